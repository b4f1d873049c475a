#!/usr/bin/env bash
# The preload reaches everything, names are left over from other days.
export LD_PRELOAD=$CONDA_PREFIX/lib/libnccl.so.2
export NCCL_IB_CUDA_SUPPORT=1
export NCCL_MIN_NRINGS=4
export NCCL_COMM_ID=10.0.0.1:12345
export NCCL_HOSTID=node
export NCCL_NET_GDR_LEVEL=phb
export NCCL_DEBUG_SUBSYS=INIT,NETWORK
export NCCL_ALGO=ring,trees
export NCCL_CROSS_NIC=010
export NCCL_PROTO=LL128
export NCCL_DEBUG_FILE=/no/such/folder/nccl.%h.%p.log
export RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=0
export NCCL_NET=Libfabric NCCL_NET_PLUGIN=none
export MPICH_GPU_SUPPORT_ENABLED=1
export https_proxy=http://someone:correct-horse@proxy.example.org:8000/
export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567
unset NCCL_NVLS_ENABLE
eval "$(conda shell.bash hook)"
mpirun -np 8 -x NCCL_NVLINK_DISABLE=1 -x PATH python train.py
