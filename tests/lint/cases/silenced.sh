#!/bin/bash
# nlaunch: allow-file forced-ll: the messages of this test are all small
export NCCL_PROTO=LL
export NCCL_ALGO=Rign  # nlaunch: allow unknown-algorithm: shows what NCCL says to it
# nlaunch: allow unknown-variable: an example for the course
export NCCL_NVLINK_DISABLE=1
export NCCL_DEBUG=ERROR  # nlaunch: allow unknown-value
export NCCL_DEBUG=TRACES  # nlaunch: allow no-such-rule: because
