# Taken from two places, and never tidied up.
export NCCL_DEBUG=INFO
export NCCL_IB_QPS_PER_CONNECTION=4
module load nccl
export NCCL_DEBUG=WARN

# Both are used: a program is started in between.
export NCCL_ALGO=Ring
all_reduce_perf -g 8
export NCCL_ALGO=Tree
all_reduce_perf -g 8

# The same again says nothing new, and what depends on something may be the first or the second.
export NCCL_IB_QPS_PER_CONNECTION=4
export NCCL_CROSS_NIC=1
if [ "$RAILS" = 8 ]; then export NCCL_CROSS_NIC=0; fi
unset NCCL_CROSS_NIC
export NCCL_CROSS_NIC=2

# Two names of one setting, which disagree.
export TORCH_NCCL_TRACE_BUFFER_SIZE=20000
export TORCH_FR_BUFFER_SIZE=2000
export TORCH_FR_DUMP_TEMP_FILE=/scratch/run/trace_
python train.py
