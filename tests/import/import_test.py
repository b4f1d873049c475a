#!/usr/bin/env python3
"""`nlaunch import`: each thing that it takes over from a script, what it says of the others, and what it refuses."""
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import Import  # noqa: E402

REFUSED = 65
USAGE = 64


class Parts(Import):
    def test_exports_by_owner(self):
        _, experiment, profile = self.planned("#SBATCH --gpus-per-node=2\nexport NCCL_DEBUG=WARN FI_PROVIDER=cxi HF_HOME=/x VLLM_USE_V1=1 CC=gcc-12\nexport PATH=/opt/x/bin:$PATH\n"
                                              "export PYTHONPATH=$PWD/src:$PYTHONPATH\nvllm serve m &\npython train.py\n")
        self.assertEqual(profile["env"], {"set": {"NCCL_DEBUG": "WARN", "FI_PROVIDER": "cxi", "CC": "gcc-12"}, "prepend": {"PATH": "/opt/x/bin"}})
        self.assertEqual(experiment["env"], {"set": {"HF_HOME": "/x"}, "prepend": {"PYTHONPATH": "./src"}})
        self.assertEqual(experiment["roles"]["engine"]["env"], {"VLLM_USE_V1": "1"})

    def test_variables_with_defaults_are_those_of_the_caller(self):
        _, experiment, _ = self.planned("MODEL=${MODEL:-a/b}\npython train.py --model \"$MODEL\" --out \"$OUT/x\" --seed ${SEED:-${OTHER:-1}} $1\n")
        self.assertEqual(experiment["roles"]["learner"]["command"], ["python", "train.py", "--model", "${env.MODEL:-a/b}", "--out", "${env.OUT:-}/x",
                                                                     "--seed", "${env.SEED:-${env.OTHER:-1}}", "${vars.argument1}"])
        self.assertEqual(experiment["vars"], {"argument1": ""})

    def test_what_only_a_shell_knows_is_left_to_one(self):
        _, experiment, _ = self.planned("#SBATCH -N 2\n#SBATCH --gpus-per-node=4\nexport MASTER_ADDR=$(hostname)\n"
                                        "srun accelerate launch --main_process_ip $MASTER_ADDR --machine_rank $SLURM_NODEID 'a b.py'\n")
        learner = experiment["roles"]["learner"]
        self.assertEqual(learner["command"], ["bash", "-c", "exec accelerate launch --main_process_ip \"$MASTER_ADDR\" --machine_rank '${self.node}' 'a b.py'"])
        self.assertEqual((learner["per_node"], learner["gpus"], learner["rendezvous"]), (1, 4, "torch"))

    def test_functions_are_read_where_they_are_called(self):
        for script, learner in (
                ('launch() { srun --ntasks-per-node=1 "$@"; }\nlaunch python train.py --x 1\n', {"command": ["python", "train.py", "--x", "1"]}),
                ('run() {\n  apptainer exec --nv "$IMG" "$@"\n}\nIMG=a.sif\nrun python train.py --lr 1 &\n',
                 {"wrapper": ["apptainer", "exec", "--nv", "a.sif"], "command": ["python", "train.py", "--lr", "1"]}),
                ('function launch {\n  srun python "$1" --lr ${2:-3}\n}\nlaunch train.py 1e-4\n', {"command": ["python", "train.py", "--lr", "1e-4"]}),
                ('launch() { srun python "$1" --lr ${2:-3}; }\nlaunch train.py\n', {"command": ["python", "train.py", "--lr", "3"]}),
                ('f() { apptainer exec a.sif python train.py "$@"; }\nf --lr 1\n', {"wrapper": ["apptainer", "exec", "a.sif"],
                                                                                   "command": ["python", "train.py", "--lr", "1"]}),
                ('run() {\n  local name=$1\n  shift\n  "$@" --name $name\n}\nrun a python train.py\n', {"command": ["python", "train.py", "--name", "a"]}),
                ('outer() { inner python "${@:2}"; }\ninner() { A=1 "$@"; }\nouter x train.py\n', {"command": ["python", "train.py"], "env": {"A": "1"}}),
                ('main() {\n  python train.py $1\n}\nmain "$@"\n', {"command": ["python", "train.py", "${vars.argument1}"]})):
            with self.subTest(script):
                made = self.planned(script)[1]["roles"]["learner"]
                self.assertEqual({key: made[key] for key in ("wrapper", "command", "env") if key in made}, learner)
        script = ('serve() {\n  CUDA_VISIBLE_DEVICES=$1 vllm serve $2 --port $3 &\n}\nserve 0,1 a 8001\nserve 2 b 8002\n'
                  'ready() {\n  until curl -s localhost:$1/health; do sleep 1; done\n}\nready 8001\nready 8002\npython train.py\n')
        _, experiment, _ = self.planned(script)
        self.assertEqual({name: (role["command"], role["gpus"], role["ready"]["http"]) for name, role in experiment["roles"].items() if name != "learner"},
                         {"engine": (["vllm", "serve", "a", "--port", "8001"], 2, "http://${self.host}:8001/health"),
                          "engine-2": (["vllm", "serve", "b", "--port", "8002"], 1, "http://${self.host}:8002/health")})
        _, text, _ = self.import_text(script)
        self.assertIn("  engine:  # line 4\n", text)
        self.assertIn("  engine-2:  # line 5\n", text)

    def test_a_call_that_comes_to_nothing_is_a_comment(self):
        _, text, _ = self.import_text("say() { echo \"$@\"; }\nsay hello\nsay python x.py\nvllm serve m &\npython train.py\n")
        self.assertIn("# line 3: say python x.py\n", text)
        self.assertNotIn("# line 2: ", text)
        endless = "f() { f $1; f $2; f $3; }\nf a b c\npython train.py\n"
        self.assertEqual(self.planned(endless)[1]["roles"]["learner"]["command"], ["python", "train.py"])

    def test_patterns_are_left_to_a_shell(self):
        for words, line in (("data/*.json {1..3}", "data/*.json {1..3}"), ("$HOME/x?.json ~/*", "'${env.HOME}'/x?.json '${env.HOME}'/*"),
                            ("--x {a,b}@* 'a b'", "--x {a,b}@* 'a b'")):
            with self.subTest(words):
                self.assertEqual(self.planned(f"python train.py {words}\n")[1]["roles"]["learner"]["command"], ["bash", "-c", f"exec python train.py {line}"])
        for words, kept in (("'data/*.json' \"{1..3}\"", ["data/*.json", "{1..3}"]), ("a={b:1} c=[1,2]", ["a={b:1}", "c=[1,2]"]), ("\\*", ["*"])):
            with self.subTest(words):
                self.assertEqual(self.planned(f"python train.py {words}\n")[1]["roles"]["learner"]["command"], ["python", "train.py", *kept])

    def test_a_file_that_got_the_output_is_a_comment(self):
        for behind, file in ((" > logs/train.log 2>&1", "logs/train.log"), (" &>> \"$LOGS/a b.log\" &", "$LOGS/a b.log"),
                             (" --x '>' 2>&1 | tee -a x.log", "x.log"), (" $(date > now) \\\n  2>err.log", "err.log")):
            with self.subTest(behind):
                _, text, _ = self.import_text(f"echo a > b; python train.py{behind}\nwait\n")
                self.assertIn(f"    # line 1: its output went to {file}: here it is in attempt-N/logs/ of the run directory\n", text)
        for behind in (" > /dev/null 2>&1", " 2>&1; echo a > b", " & echo a > b", " | grep x > b", " || echo a > b", " # > b", " --x '> b'"):
            with self.subTest(behind):
                self.assertNotIn("its output went", self.import_text(f"python train.py{behind}\n")[1])

    def test_a_global_preload_is_not_taken_over(self):
        _, experiment, profile = self.import_text("export LD_PRELOAD=/x/libnccl.so.2\npython train.py\n")
        self.assertIn("# line 1: LD_PRELOAD for everything is not taken over", profile)
        self.assertNotIn("preload", yaml.safe_load(experiment)["roles"]["learner"])

    def test_the_preload_of_one_command(self):
        _, experiment, profile = self.planned("#SBATCH --gpus-per-node=1\nL=/x/libnccl.so.2\nLD_PRELOAD=$L:/y/libfoo.so python train.py\n")
        self.assertEqual(experiment["roles"]["learner"]["preload"], ["nccl", "foo"])
        self.assertEqual(profile["libraries"], {"nccl": {"path": "/x/libnccl.so.2"}, "foo": {"path": "/y/libfoo.so"}})

    def test_the_environment_that_is_activated(self):
        for text, folder in (("venvs/rl/bin/activate", "venvs/rl"), ("~/miniforge3/bin/activate rl", "${env.HOME}/miniforge3/envs/rl"),
                             ("/opt/conda/bin/activate base", "/opt/conda"), ("/opt/conda/bin/activate /envs/rl", "/envs/rl")):
            with self.subTest(text):
                self.assertEqual(self.planned(f"source {text}\npython train.py\n")[1]["venv"], folder)
        _, experiment, _ = self.import_text("source /opt/conda/bin/activate rl\npython train.py\n")
        self.assertIn("venv: /opt/conda/envs/rl  # line 1; where conda keeps it, unless conda env list shows another folder\n", experiment)
        self.assertEqual(self.planned("conda activate ~/envs/rl\npython train.py\n")[1]["venv"], "${env.HOME}/envs/rl")
        _, experiment, _ = self.import_text("source ~/.bashrc; conda activate trl\npython train.py\n")
        self.assertIn("# line 1: source ~/.bashrc: not read here; what is needed of it belongs into env or modules\n", experiment)
        self.assertIn(": `venv: FOLDER` takes the environment's folder", experiment)
        self.assertNotIn("run it beforehand", experiment)
        for text in ("source /opt/conda/bin/activate $(pick)", "conda activate rl"):
            _, experiment, _ = self.import_text(f"{text}\npython train.py\n")
            self.assertIn(f"# line 1: {text}: `venv: FOLDER` takes the environment's folder (conda env list shows it)\n", experiment)
            self.assertNotIn("venv", yaml.safe_load(experiment))

    def test_what_a_loop_starts_is_its_first_round(self):
        engine = "CUDA_VISIBLE_DEVICES=$i vllm serve m --port $((8000+i)) &"
        first = "in a loop over i, of which this is the first of {} rounds: "
        count = "`count: {0}` starts {0} of it, and `ports: [http]` gives each a port, ${{self.ports.http}}"
        for head, rounds in (("i in 0 1", 2), ("i in {0..3}", 4), ("i in $(seq 0 7)", 8), ("((i = 0; i < N; i++))", 3)):
            for body in (f"for {head}; do\n  {engine}\ndone\n", f"for {head}\ndo\n  {engine}\ndone\n"):
                with self.subTest(body):
                    script = f"N=3\n{body}wait\npython train.py --x $i\n"
                    _, experiment, _ = self.planned(script)
                    self.assertEqual(experiment["roles"]["engine"], {
                        "kind": "engine", "gpus": 1, "command": ["vllm", "serve", "m", "--port", "8000"],
                        "ready": {"http": "http://${self.host}:8000/health", "timeout": "20m"}})
                    after = "${env.i:-}" if "((" in head else str(rounds - 1)  # what the loop left in its variable
                    self.assertEqual(experiment["roles"]["learner"]["command"], ["python", "train.py", "--x", after])
                    self.assertEqual("i has what the loop of line 2 left in it" in self.import_text(script)[1], "((" in head)
                    line = script.splitlines().index(f"  {engine}") + 1
                    self.assertIn(f"    # line {line}: {first.format(rounds)}{count.format(rounds)}\n", self.import_text(script)[1])
        _, experiment, _ = self.import_text("for i in 1e-4 1e-5; do python train.py --lr $i; done\n")
        self.assertEqual(yaml.safe_load(experiment)["roles"]["learner"]["command"], ["python", "train.py", "--lr", "1e-4"])
        self.assertIn(f"    # line 1: {first.format(2)}`vars` and --set make a run of each\n", experiment)
        _, experiment, _ = self.import_text("while sleep 1; do\n  python train.py\ndone\n")
        self.assertIn("    # line 2: in a loop, of which only the script knows the rounds: here it is started once\n", experiment)
        for script in ("for i in 1; do python train.py; done\n", "for i in $X; do echo $i; done; python train.py\n", "echo for i in 1 2\npython train.py\ndone\n"):
            self.assertNotIn("in a loop", self.import_text(script)[1])

    def test_a_port_that_only_a_shell_knows_is_nlaunch_s_to_choose(self):
        for port in ("$((8000 + RANDOM))", "800$i", "$PORT"):
            for option in (("--port", port), (f"--port={port}",)):
                with self.subTest(option):
                    script = f"for i in $(cat list); do\n  vllm serve m {' '.join(option)} &\ndone\npython train.py\n"
                    engine = self.planned(script)[1]["roles"]["engine"]
                    self.assertEqual(engine, {"kind": "engine", "gpus": 1, "ports": ["http"],
                                              "command": ["vllm", "serve", "m", *(one.replace(port, "${self.ports.http}") for one in option)],
                                              "ready": {"http": "http://${self.host}:${self.ports.http}/health", "timeout": "20m"}})
                    text = self.import_text(script)[1]
                    self.assertIn("    # line 2: in a loop over i, of which only the script knows the rounds: `count: N` or `per: node` starts as many\n"
                                  "    # line 2: its port is made when the script runs: nlaunch chooses one, and others have it by ${role.engine.addrs}\n", text)

    def test_the_walltime(self):
        for text, walltime in (("#SBATCH --signal=B:USR1@300\npython train.py\n", {"before": "300s", "then": "stop"}),
                               ("#SBATCH --signal=B:USR1@120\ntrap 'scontrol requeue $SLURM_JOB_ID' USR1\npython train.py\n", {"before": "120s", "then": "requeue"}),
                               ("#SBATCH --signal=B:USR1@120\ntrap 'sbatch $0' USR1\npython train.py\n", {"before": "120s", "then": "chain"}),
                               ("#SBATCH --signal=B:USR1@120\ntrap 'rm -rf x' USR1\npython train.py\n", {"before": "120s", "then": "stop"}),
                               ("#SBATCH --signal=USR2@90\n#SBATCH --requeue\npython train.py\n", {"signal": "USR2", "before": "90s", "then": "requeue"}),
                               ("if [ $N -lt 7 ]; then sbatch --dependency=afterany:$SLURM_JOB_ID \"$0\"; fi\npython train.py\n", {"then": "chain", "max": 7})):
            self.assertEqual(self.planned(text)[1]["walltime"], walltime)

    def test_a_wait_for_an_address_is_readiness(self):
        _, experiment, _ = self.planned("PORT=7000\npython server.py --port $PORT &\nuntil curl -s localhost:$PORT/ok; do sleep 2; [ $((i++)) -ge 30 ] && exit 1; done\n"
                                        "python train.py\n")
        self.assertEqual(experiment["roles"]["server"]["ready"], {"http": "http://localhost:7000/ok", "timeout": "60s"})
        self.assertEqual(experiment["start"], [["server"], ["learner"]])

    def test_a_wait_without_a_limit_is_said(self):
        _, experiment, _ = self.import_text("vllm serve m &\nuntil curl -s localhost:8000/health; do sleep 2; done\npython train.py\n")
        self.assertIn("    ready: {http: \"http://${self.host}:8000/health\", timeout: 10m}  # line 2; no limit was found there: 10m is nlaunch's default\n",
                      experiment)

    def test_what_cannot_be_placed_stands_with_its_line(self):
        _, experiment, profile = self.import_text("#SBATCH --array=1-4\n#SBATCH --nonsense=1\nulimit -n 65536\ncp -r a b\nmodule use /x\npython prepare.py\n"
                                                  "if x; then export NCCL_ALGO=Ring; fi\npython train.py\n")
        for text, line in ((experiment, "line 3: ulimit -n 65536"), (experiment, "line 4: cp -r a b"), (experiment, "line 6: python prepare.py; it ends before"),
                           (experiment, "line 1: --array=1-4 cannot stand here"), (experiment, "line 2: --nonsense=1 is no option of sbatch"),
                           (profile, "line 5: module use /x"), (profile, "line 7: only under a condition: if x; then export NCCL_ALGO=Ring; fi")):
            self.assertIn(f"# {line}", text)

    def test_what_ran_after_the_training_is_not_said_to_run_before(self):
        _, experiment, _ = self.import_text("ulimit -n 65536\npython prepare.py\ntorchrun train.py\npython eval.py\n")
        for line in ("line 1: ulimit -n 65536", "line 2: python prepare.py; it ends before the others start: run it beforehand, roles run together",
                     "line 4: python eval.py; it starts when the training has ended: run it afterwards, roles run together"):
            self.assertIn(f"  # {line}\n", experiment)

    def test_what_is_done_by_the_way_is_a_comment(self):
        for text, line in (("python - <<PY\nprint(1)\nPY\n", "line 1: python - <<PY; what it does is not taken over"),
                           ("python -c 'print(1)'\n", "line 1: python -c 'print(1)'; what it does is not taken over"),
                           ("scontrol show hostnames | sed 's/$/ slots=4/' > hostfile\n",
                            "line 1: scontrol show hostnames | sed 's/$/ slots=4/' > hostfile; it writes hostfile, and nobody here does"),
                           ("echo '{}' > ds.json\n", "line 1: echo '{}' > ds.json; it writes ds.json, and nobody here does"),
                           ("cat > ds.json <<E\n{}\nE\n", "line 1: cat > ds.json <<E")):
            with self.subTest(text):
                self.assertIn(f"  # {line}\n", self.import_text(text + "python train.py\n")[1])
        for text in ("echo hi >> logs/x\n", "nvidia-smi > gpus.out\n", "echo hi >&2\n", "date > /dev/stderr\n"):
            self.assertNotIn("  # line 1", self.import_text(text + "python train.py\n")[1])

    def test_a_hostfile_of_deepspeed_is_said(self):
        _, experiment, _ = self.import_text("#SBATCH -N 2\n#SBATCH --gres=gpu:4\ndeepspeed --hostfile hosts train.py\n")
        self.assertIn("    # line 3: --hostfile: deepspeed would start its ranks by ssh, from each node.", experiment)


class Tools(Import):
    """What stands in front of a program, or starts it."""

    def test_numactl_stays_and_timeout_is_said(self):
        script = "#SBATCH --ntasks=2\n#SBATCH --gpus-per-task=1\nsrun timeout -k 5 3600 numactl -N 0 --membind=0 python train.py\n"
        _, experiment, profile = self.planned(script)
        self.assertEqual(experiment["roles"]["learner"]["command"], ["numactl", "-N", "0", "--membind=0", "python", "train.py"])
        self.assertEqual((profile["scheduler"]["directives"], profile["node"]), ({"gpus-per-node": 2}, {"gpus": 2}))
        self.assertIn("    # line 3: timeout 3600 is left out: ", self.import_text(script)[1])
        self.assertIn("    # line 1: env -u HOME is left out\n", self.import_text("env -u HOME python train.py\n")[1])
        learner = self.planned("numactl -l apptainer exec a.sif python train.py\n")[1]["roles"]["learner"]
        self.assertEqual((learner["wrapper"], learner["command"]), (["numactl", "-l", "apptainer", "exec", "a.sif"], ["python", "train.py"]))

    def test_mpirun_and_uv(self):
        script = "mpirun -np 8 --map-by ppr:8:node -x NCCL_DEBUG=WARN -x PATH python train.py\n"
        learner = self.planned(script)[1]["roles"]["learner"]
        self.assertEqual(learner, {"kind": "learner", "per_node": 8, "rendezvous": "torch", "command": ["python", "train.py"], "env": {"NCCL_DEBUG": "WARN"}})
        self.assertIn("    # line 1: mpirun's work is nlaunch's, which does without --map-by ppr:8:node: ", self.import_text(script)[1])
        for command in ("uv run rl @ a.toml", "uv run --extra x mytool a", "poetry run python train.py"):
            self.assertEqual(self.planned(command + "\n")[1]["roles"]["learner"]["command"], command.split())

    def test_steps_on_some_of_the_nodes(self):
        script = ("#SBATCH --nodes=3\n#SBATCH --gres=gpu:8\nsrun --nodes=2 --ntasks=2 torchrun --nnodes 2 --nproc-per-node 8 train.py &\n"
                  "srun --nodes=1 --ntasks=1 vllm serve m --tensor-parallel-size 8 &\nwait\n")
        plan, experiment, _ = self.planned(script)
        self.assertEqual({(one["role"], one["node"]) for one in plan["processes"] if one["role"] == "engine"} &
                         {("engine", one["node"]) for one in plan["processes"] if one["role"] == "learner"}, set())
        self.assertEqual(sum(one["role"] == "learner" for one in plan["processes"]), 16)
        _, text, _ = self.import_text(script)
        self.assertIn("    # line 3: its step has 2 of the job's 3 nodes: nlaunch places 16 where there are free GPUs\n", text)
        self.assertNotIn("share", text)

    def test_ray_without_a_number_of_gpus(self):
        script = "#SBATCH -N 2\n#SBATCH --exclusive\nray start --head --block &\nsrun ray start --address $ip:6379 --block &\npython3 train.py\n"
        _, experiment, _ = self.planned(script)
        for role in ("ray-head", "ray-worker"):
            self.assertNotIn("--num-gpus=${self.gpus}", experiment["roles"][role]["command"])
        self.assertIn("    # line 3: neither a directive nor --num-gpus says how many GPUs a node has: ", self.import_text(script)[1])

    def test_the_last_program_of_a_list_is_the_service(self):
        step = "srun -N1 -n1 bash -c \"pip install ray && ray {}\""
        script = (f"#SBATCH -N 2\n#SBATCH --gres=gpu:8\n{step.format('start --head --block')} &\n{step.format('start --address $ip --block')} &\n"
                  f"{step.format('job submit -- python3 train.py')}\n")
        self.assertEqual(list(self.planned(script)[1]["roles"]), ["ray-head", "ray-worker", "trainer", "learner"])
        self.assertIn('  # line 3: srun -N1 -n1 bash -c "pip install ray && ray start --head --block" &\n', self.import_text(script)[1])

    def test_the_runtime_environment_of_a_ray_job(self):
        script = ("#SBATCH --gres=gpu:8\nray start --head --block &\n"
                  "ray job submit --working-dir . --runtime-env-json='{\"pip\": [\"x\"], \"env_vars\":{\"NCCL_NVLS_ENABLE\":\"0\",\"B\":\"1\", \"A_TOKEN\": \"s3cr3t-word\"}}' "
                  "-- python3 train.py\n")
        _, experiment, profile = self.planned(script)
        self.assertEqual((experiment["env"], experiment["secrets"], profile["env"]["set"]), ({"B": "1"}, {"A_TOKEN": "env"}, {"NCCL_NVLS_ENABLE": "0"}))
        _, text, _ = self.import_text(script)
        self.assertIn("# line 3: of the runtime environment are left out: pip\n", text)
        self.assertIn("# line 3: of ray job submit --working-dir is left out", text)
        self.assertNotIn("s3cr3t", text)
        _, text, _ = self.import_text(script.replace("'{", "\"$X\"'{"))
        self.assertIn("# line 3: of ray job submit --working-dir --runtime-env-json is left out", text)


class Around(Import):
    def test_nothing_is_overwritten(self):
        script = self.folder / "a.sbatch"
        script.write_text("python train.py\n")
        self.assertEqual(self.run_import(script, cwd=self.folder).returncode, 0)
        before = (self.folder / "a.yaml").read_text()
        (self.folder / "a.site.yaml").unlink()
        result = self.run_import(script, cwd=self.folder)
        self.assertEqual((result.returncode, self.normal(result.stderr)),
                         (USAGE, "nlaunch import: './a.yaml' is there already: remove it, or give another --name or --output\n"))
        self.assertEqual((self.folder / "a.yaml").read_text(), before)
        self.assertFalse((self.folder / "a.site.yaml").exists())

    def test_what_is_said(self):
        script = self.folder / "a.sbatch"
        script.write_text("python train.py\n")
        result = self.run_import(script, "--output", self.folder / "new")
        self.assertEqual(self.normal(result.stderr), "$FOLDER/new/a.yaml and $FOLDER/new/a.site.yaml: read them, decide what their comments ask, then: "
                                                     "nlaunch plan $FOLDER/new/a.yaml --site $FOLDER/new/a.site.yaml\n")
        self.assertEqual(self.run_import(script, "--stdout", "--output", "x").returncode, USAGE)
        self.assertEqual(self.run_import(script, "--name", "a b").returncode, USAGE)

    def test_what_cannot_be_imported(self):
        result, _, _ = self.import_text("echo hello\n")
        self.assertEqual((result.returncode, result.stdout, self.normal(result.stderr)),
                         (REFUSED, "", "nlaunch import: $FOLDER/job.sbatch starts no program that could be a role: python, torchrun, accelerate, vllm serve, "
                                       "ray, srun PROGRAM. Name the script that starts it (what `bash FILE` and `source FILE` run is not read), "
                                       "or write the experiment: docs/experiment.md\n"))
        self.assertIn("is no text: import reads sbatch and shell scripts", self.import_text(b"\x7fELF\0\0")[0].stderr)
        self.assertEqual(self.run_import("no-such-file").returncode, REFUSED)
        self.assertEqual(self.import_text(b"python x.py\n" * 1_000_000)[0].returncode, REFUSED)

    def test_odd_scripts_end_in_files_that_plan(self):
        for text in ("python train.py \"a\n", "f() {\npython train.py\n", "python train.py\r\nexport A=b\r\n", "eval \"$X\"\npython train.py '${x'\n",
                     "A=\"$A$A\"\n" * 200 + "python train.py $A\n", "export K='a: b # c'\npython train.py '- x' '{y}' 'no' '1' '' '\t'\n",
                     "python train.py \xe9 \u2028\n", "export A=" + "x" * 5000 + "\npython train.py\n"):
            with self.subTest(text[:40]):
                self.planned(text)
        self.assertEqual(self.import_text(b"python train.py \xff\xfe\n")[0].returncode, 0)
        self.assertEqual(self.import_text("A=(1 2\npython train.py\n")[0].returncode, REFUSED)  # all of it is in the array

    def test_what_could_not_be_read_is_said_first(self):
        quote = "a quote that nothing closes; the lines behind it are read as if it ended with its own"
        for text, line, said in (("A=b\npython3 train.py --x \"unclosed\n", 2, quote), ("python3 train.py --x 'a\n", 1, quote),
                                 ("python3 train.py\necho $(date\n", 2, "'$(' is not closed")):
            with self.subTest(text):
                self.assertIn(f"\n# line {line}: {said}\nversion: 1\n", self.import_text(text)[1])

    def test_a_long_script_takes_no_time(self):
        for line in ("export A{0}=${{B{0}:-x}}\n", "cp a b{0}\n", "python a{0}.py &\n", "curl localhost:{0} || x\n", "A{0}=\"$A{1} $A{1}\"\n"):
            text = "".join(line.format(i, i - 1) for i in range(20_000)) + "python train.py $A19999\n"
            result, experiment, _ = self.import_text(text)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertLess(len(experiment), 4_000_000)


if __name__ == "__main__":
    unittest.main()
