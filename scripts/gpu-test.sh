#!/usr/bin/env bash
# The tests that need GPUs: two or more on one machine, connected by NVLink, with PyTorch. Needs no network and no build,
# only dist/ (or build/), configs/, site-profiles/, scripts/ and tests/. Prints "N passed, N failed, N skipped" at the end.
# Arguments select the cases to run: scripts/gpu-test.sh preflight_prints_json
#
# On a machine with one GPU the two processes of a run share it over TCP, and cases that need two GPUs are skipped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
source scripts/lib/expect.sh
source scripts/lib/installed.sh

NLAUNCH=${NLAUNCH:-$(find_nlaunch)}
WORK=$(mktemp -d)
EXPECT_LIMIT=180
OPTIONS=(--site "$PWD/tests/gpu/h200.yaml" --site-dir "$PWD/site-profiles" --runs-dir "$WORK/runs" --color never)
WEIGHT_SYNC=(configs/weight-sync.yaml --set roles.engine.count=1 "${OPTIONS[@]}")  # two GPUs
RUN=("$NLAUNCH" run)  # for runs whose two processes can share a GPU, with these options:
SHARED=() SHARED_LEARNERS=()
# Presents this machine as two nodes with one GPU each.
ON_TWO_NODES=(env PATH="$PWD/tests/gpu:$PATH" SLURM_JOB_ID=1 SLURM_JOB_NODELIST='node[0-1]' SLURM_JOB_NUM_NODES=2 "$NLAUNCH")
TWO_NODES=(--site "$PWD/tests/gpu/two-nodes.yaml" --site-dir "$PWD/tests/gpu" "${OPTIONS[@]:2}")
trap 'rm -rf "$WORK"' EXIT

preflight_passes_on_all_gpus() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'all_reduce' 'all elements correct' 'P2P within a node' -- "$NLAUNCH" preflight "${OPTIONS[@]}"
}

preflight_prints_json() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 '"verdict": *"pass"' '"bytes": *22118400' -- "$NLAUNCH" preflight --json "${OPTIONS[@]}"
}

preflight_passes_for_the_experiment() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'weight sync' 'broadcast' 'P2P within a node' -- "$NLAUNCH" preflight "${WEIGHT_SYNC[@]}"
}

a_preflight_that_passed_is_not_repeated() {
  two_gpus "${FUNCNAME[0]}" || return
  local again=("${WEIGHT_SYNC[@]/#"$WORK/runs"/"$WORK/again"}")  # no other run is in between
  "$NLAUNCH" preflight "${again[@]}" >"$WORK/first.log" 2>&1 || cat "$WORK/first.log"
  expect "${FUNCNAME[0]}" 0 'level quick, because level standard passed' 'preflight pass: level quick in' 'all checks passed' -- \
    "$NLAUNCH" run "${again[@]}"
}

# Learners, engines and the probe each run in a separate container; only the learner has the preload.
WITHIN='wrapper=[bwrap, --dev-bind, /, /, --unshare-pid, --proc, /proc]'
PRELOAD_WITHIN=(--with preload-nccl --set "roles.learner.$WITHIN" --set "roles.engine.$WITHIN")

# bwrap_works NAME: skips the case if bwrap does not work.
bwrap_works() {
  bwrap --dev-bind / / --unshare-pid --proc /proc true || { skip "$1" "bwrap is missing or cannot create namespaces here" && false; }
}

a_preload_within_containers_is_probed() {
  two_gpus "${FUNCNAME[0]}" || return
  bwrap_works "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'pass +container +learner .*glibc' 'pass +container +engine' 'weight sync +2 ranks over nccl' -- \
    "$NLAUNCH" preflight "${WEIGHT_SYNC[@]}" "${PRELOAD_WITHIN[@]}"
}

a_preload_within_containers_is_proven() {
  bwrap_works "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'all checks passed: 3 syncs of 300 tensors to 1 engines' \
    'learner\.0 \(pid [0-9]+\): bound to libnccl .*, as preloaded' 'engine\.0 \(pid [0-9]+\): bound to its own libnccl ' -- \
    "${RUN[@]}" "${WEIGHT_SYNC[@]}" "${SHARED[@]}" "${PRELOAD_WITHIN[@]}"
}

two_roles_have_the_gpus_one_after_the_other() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'prepared 2' 'sum 2\.0' -- \
    "$NLAUNCH" run tests/gpu/one-after-the-other.yaml "${OPTIONS[@]}"
}

an_engine_shares_the_gpu_of_each_learner() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'preflight pass: ' 'weights 3\.0 on ' 'the engine has written 42\.0' -- \
    "$NLAUNCH" run tests/gpu/colocated.yaml "${OPTIONS[@]}"
}

the_same_on_two_nodes() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'preflight pass: ' 'weights 3\.0 on ' 'the engine has written 42\.0' -- \
    "${ON_TWO_NODES[@]}" run tests/gpu/colocated.yaml "${TWO_NODES[@]}" --set nodes=2 --set roles.learner.per_node=1 \
    --set roles.engine.per_node=1
}

a_replica_over_two_nodes_is_one_group() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'engine\.0 tensor parallel +2 ranks over nccl' -- \
    "${ON_TWO_NODES[@]}" preflight tests/gpu/replica.yaml "${TWO_NODES[@]}"
}

a_replica_over_two_nodes_runs() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'preflight pass: ' 'weights 3\.0 on ' 'the engine has written 42\.0' -- \
    "${ON_TWO_NODES[@]}" run tests/gpu/replica.yaml "${TWO_NODES[@]}"
}

# nlaunch gets GPU 0 twice: the plan has two GPUs that are the same device.
two_processes_on_one_gpu_are_refused() {
  expect "${FUNCNAME[0]}" 69 'two ranks were given the same GPU' 'learner\.0' 'engine\.0' \
    '[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.0' 'GPU-[0-9a-f]{8}' -- \
    env CUDA_VISIBLE_DEVICES=0,0 "$NLAUNCH" run "${WEIGHT_SYNC[@]}"
}

two_nccl_versions_in_one_group_are_refused() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 69 'one version of NCCL in the group' \
    "$(version_pattern "$GPU_TEST_SYSTEM_NCCL")" "$(version_pattern "$GPU_TEST_WHEEL_NCCL")" -- \
    "$NLAUNCH" run "${WEIGHT_SYNC[@]}" --set 'roles.learner.preload=[nccl-system]'
}

one_nccl_version_runs_with_its_preload_proven() {
  expect "${FUNCNAME[0]}" 0 'all checks passed: 3 syncs of 300 tensors to 1 engines' 'libnccl' -- \
    "${RUN[@]}" "${WEIGHT_SYNC[@]}" "${SHARED[@]}" --with preload-nccl --set vars.tensor_kib=4096
}

a_lost_nvlink_is_noticed() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 69 'SHM within a node' 'bandwidth' 'NCCL_P2P_DISABLE=1 is set for' -- \
    "$NLAUNCH" run "${WEIGHT_SYNC[@]}" --env NCCL_P2P_DISABLE=1
}

a_rank_that_never_joins_is_named() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 2 'engine\.0 \(GPU 1\) did not join within' 'learner\.0 \(GPU 0\) did' -- \
    python3 tests/gpu/stop_probe.py 1 "$NLAUNCH" preflight "${WEIGHT_SYNC[@]}"
}

a_gpu_that_another_process_fills_is_named() {
  expect "${FUNCNAME[0]}" 2 'pid [0-9]+' 'python3' -- \
    python3 tests/gpu/fill_gpu.py 0 "$NLAUNCH" preflight --level quick "${OPTIONS[@]}"
}

a_python_that_imports_torch_when_it_starts_is_named() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 69 'sitecustomize' 'torch' -- \
    "$NLAUNCH" run "${WEIGHT_SYNC[@]}" --env "PYTHONPATH=$PWD/tests/gpu/eager"
}

a_library_that_is_no_nccl_is_named() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 69 'is not NCCL: it has no ncclGetVersion' -- \
    "$NLAUNCH" run "${WEIGHT_SYNC[@]}" --env "VLLM_NCCL_SO_PATH=$(ldconfig -p | sed -n 's/.*libz\.so\.1 .*=> //p' | head -n1)"
}

no_gpu_memory_is_held_afterwards() {
  expect "${FUNCNAME[0]}" 0 -- test -z "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)"
}

weight_sync_runs_over_nccl() {
  expect "${FUNCNAME[0]}" 0 'all checks passed: 3 syncs of 300 tensors to 1 engines' -- "${RUN[@]}" "${WEIGHT_SYNC[@]}" "${SHARED[@]}"
}

what_nccl_read_is_compared() {
  # nlaunch: allow-file not-a-number: shows what NCCL makes of such a value
  expect "${FUNCNAME[0]}" 0 "NCCL in learner: NCCL_NTHREADS is set to '256k', but NCCL read 256" \
    'NCCL in learner: set but not read by NCCL in this run: .*NCCL_GDR_FLUSH_DISABLE' -- \
    "${RUN[@]}" "${WEIGHT_SYNC[@]}" "${SHARED[@]}" --no-lint --with nccl-debug --env NCCL_NTHREADS=256k --env NCCL_GDR_FLUSH_DISABLE=0
}

weight_sync_runs_over_gloo() {
  expect "${FUNCNAME[0]}" 0 'all checks passed: 3 syncs of 300 tensors to 1 engines' -- \
    "${RUN[@]}" "${WEIGHT_SYNC[@]}" "${SHARED[@]}" --set weight_sync.backend=gloo
}

groups_cross_nodes_over_nccl() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'pass +all_reduce .*learner world +2 ranks over nccl, all elements correct' -- \
    env PATH="$PWD/tests/gpu:$PATH" SLURM_JOB_ID=1 SLURM_JOB_NODELIST='node[0-1]' SLURM_JOB_NUM_NODES=2 \
    "$NLAUNCH" preflight --site "$PWD/tests/gpu/two-nodes.yaml" --site-dir "$PWD/tests/gpu" "${OPTIONS[@]:2}"
}

a_machine_that_lost_a_gpu_fails_its_prolog() {
  expect "${FUNCNAME[0]}" 0 -- "$NLAUNCH" preflight --node --prolog "${OPTIONS[@]:0:4}"
  expect "${FUNCNAME[0]}" 2 'fail gpus number: [0-9] GPUs? \(expected 99, as the profile says\)' -- \
    "$NLAUNCH" preflight --node --prolog "${OPTIONS[@]:0:4}" --set site.node.gpus=99
}

level_deep_measures_the_gpus() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'pass +copies +GPU to GPU +[0-9]+ paths, [0-9]+ with peer access: .*all elements correct' \
    'pass +copies +GPU to host' 'pass +gemm +bf16 matrix products .*TFLOP/s' \
    'pass +gemm-agreement +.*GPUs computed the same bits' -- "$NLAUNCH" preflight --level deep "${OPTIONS[@]}"
}

copies_are_measured_by_hand() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 '"pairs":\[\{"bandwidth":[0-9.e+]+,"from":0,"peer":true,"to":1,"wrong":0\}' \
    '"host_to_device":[0-9.e+]+,"name":"NVIDIA [^"]+","wrong":0\}' -- "$(dirname "$NLAUNCH")/nlaunch-probe" copies --devices 0,1
}

products_have_the_same_bits() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 '"differing":0' '"wrong_samples":0' -- \
    "$(dirname "$NLAUNCH")/nlaunch-probe" gemm --devices 1,0 --seconds 5
}

drills_show_what_failures_look_like() {
  two_gpus "${FUNCNAME[0]}" || return
  expect "${FUNCNAME[0]}" 0 'missing-rank' 'hangs: .*stopped after 10 s by its deadline' 'graph: all ranks' \
    'completes after .*all elements correct' 'two-streams: two orders' -- "$NLAUNCH" bench --drill all "${OPTIONS[@]}"
}

# hang FAULT PATTERN...: rank 1 causes a hang in a run over NCCL; nlaunch stops the run, and the evidence matches.
hang() {
  local fault=$1
  shift
  expect "${FUNCNAME[1]}" 124 'no progress for .* after step [49]; collecting evidence' "$@" -- \
    "${RUN[@]}" tests/gpu/hang.yaml "${OPTIONS[@]}" --no-preflight "${SHARED_LEARNERS[@]}" --set "vars.fault=$fault"
}

a_rank_that_sleeps_is_named() { hang sleeps 'learner\.1.*(sleeps|has not entered|is outside)'; }
a_rank_that_spins_is_named() { hang spins 'learner\.1'; }
a_rank_that_is_stopped_is_named() { hang stopped 'learner\.1.*stopped'; }
a_rank_in_another_collective_is_named() { hang other-collective 'learner\.1.*(broadcast|has left)|unsure'; }

a_nccl_run_that_gets_on_is_left_alone() {
  expect "${FUNCNAME[0]}" 0 'finished after' -- "${RUN[@]}" tests/gpu/hang.yaml "${OPTIONS[@]}" --no-preflight "${SHARED_LEARNERS[@]}"
}

# Prints the version of a library (2.28.9) as a regular expression.
version_pattern() {
  "$(dirname "$NLAUNCH")/nlaunch-probe" library "$1" | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n1 | sed 's/\./\\./g'
}

# two_gpus NAME: else the case is skipped.
two_gpus() {
  ((GPUS >= 2)) || { skip "$1" "two GPUs are needed, $GPUS found" && false; }
}

# NCCL refuses two processes of one host on one GPU; NCCL_HOSTID makes each a separate host. The preflight refuses it, too.
share_the_gpu() {
  RUN=(env "CUDA_VISIBLE_DEVICES=0,0" "$NLAUNCH" run --no-preflight --no-lint)
  SHARED=(--set roles.learner.env.NCCL_HOSTID=learner --set roles.engine.env.NCCL_HOSTID=engine)
  # shellcheck disable=SC2016  # a reference of nlaunch
  SHARED_LEARNERS=(--set 'roles.learner.env.NCCL_HOSTID=${self.rank}' --set 'roles.learner.wrapper=[env, CUDA_VISIBLE_DEVICES=0]')
}

require() {
  GPUS=$(nvidia-smi -L 2>/dev/null | wc -l)
  [[ -x $NLAUNCH ]] || { echo "nlaunch not found in dist/ or build/; run: cmake --install build --prefix dist --strip" >&2; exit 1; }
  ((GPUS >= 1)) || { echo "no GPU found" >&2; exit 1; }
  ((GPUS >= 2)) || share_the_gpu
  GPU_TEST_WHEEL_NCCL=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")')
  GPU_TEST_SYSTEM_NCCL=$(ldconfig -p | sed -n 's/.*libnccl\.so\.2 .*=> //p' | head -n1)
  export GPU_TEST_WHEEL_NCCL GPU_TEST_SYSTEM_NCCL
}

require
"$NLAUNCH" --version
run_cases "$@"
