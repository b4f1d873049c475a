# Variables of the script's own, which look as if they belonged to a library.
NCCL_TESTS_BIN=/opt/nccl-tests/build
NCCL_SIZES="8M 1G"
for size in $NCCL_SIZES; do "$NCCL_TESTS_BIN/all_reduce_perf" -b "$size"; done

# Exported, it may have been meant for NCCL.
export NCCL_LOGS=/tmp/logs
srun torchrun train.py > "$NCCL_LOGS/train.log"
