#!/usr/bin/env python3
"""`nlaunch import`: what it makes of the programs that a script starts."""
import pathlib
import subprocess
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import REFUSED, SAME, TWO_NODES, USAGE, Import  # noqa: E402


def ready_of(role):
    """When it is ready; a task, once it has exited."""
    return "exited" if role["kind"] == "task" else role.get("ready")


class Roles(Import):
    def test_what_only_bash_knows_is_as_bash_makes_it(self):
        for script, command in (
                ('A=(--lr 1); A+=(--x "2 3"); python train.py "${A[@]}"\n', ["--lr", "1", "--x", "2 3"]),
                ('A="--lr 1"; A+=" --bs 2"; python train.py $A "$B"\n', ["--lr", "1", "--bs", "2", ""]),
                ('f() { python train.py "${@:2}"; }\nf x y\n', ["y"]),
                ('case $1 in a) X=1;; *) X=2;; esac\npython train.py $X ${Y-3} ${1//a/b}\n', ["1", "3", "b"]),
                ('cat > in.sh <<EOF\npython train.py $1\nEOF\nbash in.sh\n', ["a"]),
                ('for i in $(seq 3); do [ $i = 2 ] && python train.py $i; done\n', ["2"])):
            with self.subTest(script):
                self.assertEqual(self.roles(script, "--", "a")["learner"]["command"], ["python", "train.py", *command])

    def test_tasks_that_differ_by_a_number_are_one_role(self):
        roles = self.roles(TWO_NODES + "head=$(scontrol show hostnames | head -n1)\n"
                           "srun bash -c \"torchrun --nnodes 2 --node_rank \\$SLURM_NODEID --nproc_per_node 4 --rdzv_endpoint $head:29500 train.py --on \\$(hostname)\"\n")
        self.assertEqual(roles, {"learner": {"kind": "learner", "per_node": 1, "gpus": 4, "rendezvous": "torch", "command": [
            "torchrun", "--nnodes", "2", "--node_rank", "${self.index}", "--nproc_per_node", "4", "--rdzv_endpoint", "${role.learner.0.host}:29500", "train.py",
            "--on", "${self.host}"]}})

    def test_tasks_that_start_different_programs_are_roles(self):
        roles = self.roles(TWO_NODES + "srun bash -c 'if [ $SLURM_PROCID -eq 0 ]; then vllm serve m --tensor-parallel-size 4; else python train.py; fi'\n")
        self.assertEqual({name: (role["kind"], role.get("count", 1), role["command"][0]) for name, role in roles.items()},
                         {"engine": ("engine", 1, "vllm"), "learner": ("learner", 1, "python")})

    def test_a_loop_over_the_nodes_starts_one_role(self):
        roles = self.roles(TWO_NODES + "i=0\nfor node in $(scontrol show hostnames); do\n  srun -N1 -n1 -w $node python train.py --rank $i &\n  i=$((i + 1))\ndone\nwait\n")
        self.assertEqual((list(roles), roles["learner"]["command"]), (["learner"], ["python", "train.py", "--rank", "${self.index}"]))

    def test_what_comes_before_the_training_is_a_stage_of_its_own(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\npython prepare.py\ncp -r data /tmp/data\ntorchrun --nproc_per_node 4 train.py\npython upload.py\n")
        self.assertEqual(experiment["start"], [["prepare"], ["cp"], ["learner"], ["upload"]])
        self.assertEqual([ready_of(experiment["roles"][name]) for name in ("prepare", "cp", "learner")], ["exited"] * 3)

    def test_what_is_waited_for_has_ended(self):
        both = "python a.py &\nsrun -N1 -n1 python b.py &\n"
        for script, start in (
                (both + "wait\nsrun python train.py\n", [["a", "b"], ["learner"]]),
                (both + "last=$!\npython c.py\nwait $last\nsrun python train.py\n", [["a", "b", "c"], ["learner"]]),
                (both + "wait\npython c.py &\nwait\nsrun python train.py\n", [["a", "b"], ["c"], ["learner"]]),
                ("for i in 1 2; do\n  python a.py $i &\n  wait\ndone\nsrun python train.py\n", [["a"], ["a-2"], ["learner"]]),
                ("srun bash -c 'python a.py & python b.py & wait; python train.py'\n", [["a", "b"], ["learner"]])):
            with self.subTest(script):
                _, experiment, _ = self.planned(TWO_NODES + script)
                self.assertEqual(experiment["start"], start)
                ends = {name for names in start[:-1] for name in names} - ({"a"} if "$last" in script else set())
                self.assertEqual({name for name, role in experiment["roles"].items() if ready_of(role) == "exited"}, ends)
        # What nothing waits for runs on, and what the script waits for at its end ends the run.
        _, experiment, _ = self.planned(TWO_NODES + both + "srun python train.py\n")
        self.assertEqual((experiment["start"], experiment["roles"]["a"].get("ends_run")), ([["a", "b"], ["learner"]], None))
        _, experiment, _ = self.planned(TWO_NODES + both + "srun python train.py\nwait\n")
        self.assertEqual([role.get("ends_run", role["kind"] == "learner") for role in experiment["roles"].values()], [True] * 3)

    def test_a_job_ends_when_all_that_it_waits_for_have_ended(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=0,1 python controller.py &\nCUDA_VISIBLE_DEVICES=2,3 python rollout.py &\npython dispatcher.py &\nwait\n")
        roles = experiment["roles"]
        self.assertEqual([(role["kind"], role.get("ends_run")) for role in roles.values()], [("learner", None), ("service", True), ("service", True)])

    def test_what_is_nowhere_here_may_be_in_the_background(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nollama serve > log 2>&1 &\nredis-server &\nno-such-server --port 1 &\nsleep 5; sleep 1m\nollama pull m\npython train.py\nkill %1\n")
        roles = experiment["roles"]
        self.assertEqual(experiment["start"], [["engine", "redis-server", "no-such-server"], ["ollama"], ["learner"]])
        self.assertEqual({name: ready_of(role) for name, role in roles.items()}, {
            "engine": {"http": "http://127.0.0.1:11434/", "timeout": "60m"}, "redis-server": {"delay": "65s"}, "no-such-server": {"delay": "65s"},
            "ollama": "exited", "learner": None})
        self.assertEqual((roles["no-such-server"]["exit"], roles["ollama"].get("gpus")), ("ok", None))
        for script in ("conda run -n e python serve.py &\n", "f() { python serve.py; }\nf &\n", "{ python serve.py; } &\n"):
            with self.subTest(script):
                _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\n" + script + "sleep 5\npython train.py\n")
                self.assertEqual((experiment["roles"]["serve"].get("exit"), experiment["roles"]["serve"]["ready"]), ("ok", {"delay": "5s"}))
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\npython serve.py < /dev/null\necho a | xargs python warm.py\npython train.py\n")
        self.assertEqual([ready_of(role) for role in experiment["roles"].values()], ["exited", "exited", None])

    def test_a_stage_has_the_gpus_that_it_sees(self):
        for command in ("lm_eval --model m", "composer x.py", "bash -c 'uv run --no-sync python eval.py'", "nsys profile python x.py"):
            with self.subTest(command):
                _, experiment, _ = self.planned(TWO_NODES + f"{command}\nsrun torchrun --nproc_per_node 4 train.py\n")
                self.assertEqual([role["gpus"] for role in experiment["roles"].values()], [4, 4])

    def test_what_the_script_ends_early_is_no_role_that_runs_on(self):
        serve = "CUDA_VISIBLE_DEVICES=0 vllm serve m --port 8123 &\nserver=$!\nuntil curl -sf localhost:8123/health; do sleep 5; done\npython ask.py\nkill $server\n"
        self.assertIn("the script stops it, or waits for it to exit, before it starts train at line 8", self.refusal(
            "#SBATCH --gpus-per-node=4\n" + serve + "wait\nCUDA_VISIBLE_DEVICES=1,2,3 python train.py\n"))
        self.assertIn("line 3: `nginx -c x` moves itself to the background, where nlaunch does not see it", self.refusal(
            "#SBATCH --gpus-per-node=4\npython warm.py\nnginx -c x\n"))
        result, _, _ = self.import_text(TWO_NODES + "nvidia-smi dmon &\nlogger=$!\nsrun python train.py\nkill $logger\npython upload.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_a_step_does_with_files_is_a_stage(self):
        _, experiment, _ = self.planned(TWO_NODES + "srun bash -c 'rm -rf /scratch/ray; mkdir -p /scratch/x'\nsrun torchrun --nproc_per_node 4 train.py\n")
        self.assertEqual((experiment["start"], experiment["roles"]["rm"]["per"], ready_of(experiment["roles"]["mkdir"])), ([["rm"], ["mkdir"], ["learner"]], "node", "exited"))
        _, experiment, _ = self.planned(TWO_NODES + "srun bash -c 'mkdir -p /scratch/x; uvicorn a:b' &\nsleep 5\nsrun torchrun --nproc_per_node 4 train.py\n")
        self.assertEqual((experiment["start"], ready_of(experiment["roles"]["mkdir"])), ([["mkdir"], ["uvicorn"], ["learner"]], "exited"))
        result, experiment, _ = self.import_text(TWO_NODES + "srun torchrun --nproc_per_node 4 train.py\nsrun rm -rf /scratch/ray\n")
        self.assertIn("note: line 4: `rm -rf /scratch/ray` is not imported: nothing comes after it\n", result.stderr)
        self.assertEqual(list(yaml.safe_load(experiment)["roles"]), ["learner"])

    def test_a_server_is_ready_when_the_script_goes_on(self):
        script = ("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=0,1 vllm serve m --tensor-parallel-size 2 --port 8123 &\n"
                  "until curl -sf localhost:8123/health; do sleep 5; done\nCUDA_VISIBLE_DEVICES=2,3 torchrun --nproc_per_node 2 train.py\n")
        _, experiment, _ = self.planned(script)
        self.assertEqual(experiment["roles"]["engine"]["ready"], {"http": "http://127.0.0.1:8123/health", "timeout": "60m"})
        self.assertEqual((experiment["start"], experiment["roles"]["engine"]["gpus"]), ([["engine"], ["learner"]], 2))

    def test_a_file_that_the_script_waits_for(self):
        before = "#SBATCH --gpus-per-node=2\nCUDA_VISIBLE_DEVICES=0 python serve.py --out ready.txt &\n"
        for loop, test in (("while [ ! -f ready.txt ]; do sleep 2; done", "-f"), ("until [ -s ready.txt ]; do sleep 2; done", "-s"),
                           ("while ! test -d ready.txt; do\n  echo waiting\n  sleep 10\ndone", "-d"), ("until [[ -e ready.txt ]]; do sleep 1; done", "-e"),
                           ("for i in $(seq 60); do\n  [ -f ready.txt ] && break\n  sleep 5\ndone\n[ -f ready.txt ] || exit 1", "-f")):
            result, experiment, _ = self.import_text(before + loop + "\nCUDA_VISIBLE_DEVICES=1 python train.py\n")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("it waits until ready.txt is there, however long that takes\n", result.stderr)
            self.assertNotIn("--exists", result.stderr)
            made = yaml.safe_load(experiment)
            self.assertEqual(made["start"], [["serve"], ["wait"], ["learner"]], loop)
            self.assertEqual(made["roles"]["wait"]["command"], ["bash", "-c", f'until [ {test} "$1" ]; do sleep 5; done', "wait", "ready.txt"])
        # One that nothing in the script makes, and one for which nothing waits.
        alone = self.roles("#SBATCH --gpus-per-node=1\nwhile [ ! -f /data/a.jsonl ]; do sleep 5; done\npython train.py\n")
        self.assertEqual(alone["wait"]["command"][-1], "/data/a.jsonl")
        self.assertNotIn("wait", self.roles("#SBATCH --gpus-per-node=1\npython train.py\nwhile [ ! -f done.txt ]; do sleep 5; done\n"))

    def test_the_time_that_a_wait_gets(self):
        script = ("#SBATCH --gpus-per-node=2\nCUDA_VISIBLE_DEVICES=0 vllm serve m --port 8000 &\n"
                  "timeout 10m bash -c 'until curl -sf localhost:8000/health; do sleep 5; done'{}\nCUDA_VISIBLE_DEVICES=1 python train.py\n")
        self.assertEqual(self.roles(script.format(" || exit 1"))["engine"]["ready"]["timeout"], "600s")
        self.assertEqual(self.roles(script.format("").replace("CUDA", "set -e\nCUDA", 1))["engine"]["ready"]["timeout"], "600s")
        result, _, _ = self.import_text(script.format(""))
        self.assertIn("after 600 s without an answer the script goes on: here the run waits longer, and fails then\n", result.stderr)

    def test_a_server_that_the_script_does_not_wait_for_is_said(self):
        script = "#SBATCH --gpus-per-node=2\nCUDA_VISIBLE_DEVICES=0 vllm serve m --port 8000 &\n{}CUDA_VISIBLE_DEVICES=1 python train.py\n"
        note = "the script starts learner at once: here it starts when engine answers\n"
        self.assertIn(note, self.import_text(script.format(""))[0].stderr)
        for wait in ("sleep 60\n", "until curl -sf localhost:8000/health; do sleep 5; done\n"):
            self.assertNotIn(note, self.import_text(script.format(wait))[0].stderr, wait)

    def test_a_container_is_the_wrapper_of_all_that_it_starts(self):
        roles = self.roles("#SBATCH --gpus-per-node=2\napptainer exec --nv a.sif bash -c 'cd /w && export A=1 && torchrun --nproc_per_node=2 train.py'\n")
        self.assertEqual(roles["learner"], {"kind": "learner", "per_node": 1, "gpus": 2, "rendezvous": "torch", "wrapper": ["apptainer", "exec", "--nv", "a.sif"],
                                            "command": ["bash", "-c", "cd /w && export A=1 && torchrun --nproc_per_node=2 train.py"]})

    def test_ray_on_all_nodes(self):
        roles = self.roles(TWO_NODES + "nodes=($(scontrol show hostnames)); ip=$(srun -N1 -n1 -w ${nodes[0]} hostname -I)\n"
                           "srun -N1 -n1 -w ${nodes[0]} ray start --head --node-ip-address=$ip --port=6379 --block &\nsleep 10\n"
                           "srun -N1 -n1 -w ${nodes[1]} /opt/x/bin/ray start --address $ip:6379 --block &\nsleep 5\nray status\npython -m verl.trainer.main_ppo a=b\n")
        self.assertEqual([(name, role["kind"]) for name, role in roles.items()],
                         [("ray-head", "service"), ("ray-worker", "service"), ("trainer", "service"), ("learner", "learner")])
        self.assertEqual(roles["ray-worker"]["command"], ["/opt/x/bin/ray", "start", "--address", "${role.ray-head.0.host}:6379", "--block"])
        self.assertEqual(roles["ray-worker"]["ready"]["exec"][0], "/opt/x/bin/python3")

    def test_a_driver_of_ray_uses_the_gpus_of_ray(self):
        """Also if the script starts something else behind it."""
        roles = self.roles("#SBATCH --gpus-per-node=8\nray start --head --num-gpus 8\npython -m verl.trainer.main_ppo a=b\npython summary.py\n")
        self.assertEqual({name: role.get("gpus", 0) for name, role in roles.items() if name != "ray-head"}, {"learner": 1, "trainer": 0, "summary": 0})

    def test_tasks_that_run_side_by_side_are_in_one_stage(self):
        """A readiness that nobody waits for puts nothing in order."""
        serve = "python -m sglang.launch_server --nnodes 2 --tp 8 --port 30000 --node-rank"
        _, experiment, _ = self.planned(TWO_NODES + f"srun bash -c 'if [ $SLURM_PROCID = 0 ]; then {serve} 0; else {serve} 1 --trust-remote-code; fi'\n")
        self.assertEqual((list(experiment["roles"]), "start" in experiment, [ready_of(role) for role in experiment["roles"].values()]), (["engine", "engine-2"], False, [None, None]))
        _, experiment, _ = self.planned(TWO_NODES + "srun bash -c 'if [ $SLURM_PROCID = 0 ]; then python controller.py; else pip install x; python worker.py; fi'\n")
        self.assertEqual((experiment["start"], experiment["roles"]["learner"].get("ready")), ([["learner", "pip"], ["worker"]], None))
        self.assertEqual((experiment["roles"]["worker"]["kind"], experiment["roles"]["worker"]["ends_run"]), ("service", True))
        _, experiment, _ = self.planned(TWO_NODES.replace("=2", "=3", 1) + f"srun bash -c 'case $SLURM_PROCID in 0) {serve} 0 & wait;; 1) {serve} 1 & wait;; "
                                        "*) until curl -sf http://rec-node-0:30000/health; do sleep 5; done; python bench.py;; esac'\n")
        self.assertEqual((experiment["start"], experiment["roles"]["engine"]["ready"]["http"]), ([["engine"], ["learner"]], "http://${role.engine.0.host}:30000/health"))

    def test_what_stands_behind_a_server_in_the_foreground(self):
        script = (TWO_NODES + "srun bash -c 'if [ $SLURM_PROCID = 0 ]; then ray start --head --port 6379; else ray start --address=rec-node-0:6379 --block; rm -rf /data/x; fi; cp /data/a /data/b; "
                  "[ $SLURM_PROCID = 1 ] || python train.py'\n")
        result, experiment, _ = self.import_text(script)
        self.assertEqual(result.returncode, 0, result.stderr)
        experiment = yaml.safe_load(experiment)
        self.assertEqual(experiment["start"], [["ray-head"], ["cp", "ray-worker"], ["trainer"]])
        self.assertNotIn("per", experiment["roles"]["cp"])
        self.assertIn("note: line 3: `rm -rf /data/x` is not imported: it comes after `ray start --address=${role.ray-head.0.host}:6379 --block` (line 3), which does not exit before the job ends\n",
                      result.stderr.replace("rec-node-0", "${role.ray-head.0.host}"))
        _, experiment, _ = self.planned(script.replace("; fi; cp", "; fi; while ! ray status | grep -q 8.0; do sleep 2; done; cp"))
        self.assertEqual(experiment["start"], [["ray-head"], ["ray-worker"], ["cp"], ["trainer"]])
        roles = self.roles("#SBATCH --gpus-per-node=1\nvllm serve m\npython train.py\n")
        self.assertEqual(list(roles), ["engine"])

    def test_what_no_program_can_be_called(self):
        result, experiment, _ = self.import_text("'''Usage: a b'''\nset -e\npython train.py\n", "--gpus", "1")
        self.assertEqual((result.returncode, list(yaml.safe_load(experiment)["roles"])), (0, ["learner"]), result.stderr)
        self.assertIn("note: line 1: `Usage: a b` is not imported: it is not a program name.", result.stderr)
        self.assertIn("line 2: `Usage: a b` is not a program name, so the script exits there (`set -e`)", self.refusal("set -e\n'Usage: a b'\npython train.py\n"))

    def test_what_bash_does_of_a_line_is_said(self):
        result, experiment, _ = self.import_text("python warm.py || true\necho $(python -c 'import x')\ncp /no/such/lib* /data/x\npython train.py '*.a'\n", "--gpus", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: line 1: if warm, python or cp fails, the script goes on and exits with 0: here the run stops, and fails\n", result.stderr)
        roles = yaml.safe_load(experiment)["roles"]
        self.assertEqual(roles["cp"]["command"], ["bash", "-c", "exec cp /no/such/lib* /data/x"])
        self.assertEqual(roles["learner"]["command"], ["python", "train.py", "*.a"])
        result, _, _ = self.import_text(TWO_NODES + "srun python train.py --on $SLURM_PROCID /no/such/lib*\n")
        self.assertIn("note: line 3: bash expands /no/such/lib* to the files on the cluster. learner has no shell", result.stderr)

    def test_what_runs_beside_may_end(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=2\npython dispatch.py &\nsleep 5\ntorchrun --nproc_per_node 2 train.py\n")
        self.assertEqual({name: experiment["roles"]["dispatch"][name] for name in ("gpus", "share_gpus_with", "exit")},
                         {"gpus": 2, "share_gpus_with": "learner", "exit": "ok"})
        result, experiment, _ = self.import_text("#SBATCH --gpus-per-node=2\n./dispatch &\nsleep 5\ntorchrun --nproc_per_node 2 train.py\n")
        self.assertEqual(yaml.safe_load(experiment)["roles"]["dispatch"]["exit"], "ok")
        self.assertIn("note: line 2: dispatch sees 0 of its node's 2 GPUs (CUDA_VISIBLE_DEVICES), but all of them in the script\n", result.stderr)
        self.assertIn("The same job, but for the GPUs that a program sees: everything the script would start has the same arguments, working "
                      "directory and other variables.\n", result.stderr)

    def test_what_fails_here_may_fail(self):
        (self.folder / "conf").mkdir()
        (self.folder / "a.txt").write_text("a")
        result, experiment, _ = self.import_text("mkdir target\ncp a.txt conf target\npython train.py\n")
        self.assertEqual(yaml.safe_load(experiment)["roles"]["cp"]["command"], ["bash", "-c", '"$@" || true', "going-on", "cp", "a.txt", "conf", "target"])
        self.assertIn("    # line 2: it fails here, and the script continues: so does the run\n", experiment)

    def test_bash_gives_a_program_its_input(self):
        _, experiment, _ = self.import_text("yes | python a.py\npython b.py <<EOF\non $(hostname)\nEOF\npython train.py\n")
        roles = yaml.safe_load(experiment)["roles"]
        self.assertEqual(roles["a"]["command"], ["bash", "-c", 'exec "$@" < <(yes "$0")', "y", "python", "a.py"])
        self.assertEqual(roles["b"]["command"], ["bash", "-c", 'exec "$@" < <(printf %s "$0")', "on ${self.host}\n", "python", "b.py"])

    def test_a_file_that_the_script_writes_is_its_input(self):
        _, experiment, _ = self.import_text("echo 1 > conf\npython train.py < conf\n")
        roles = yaml.safe_load(experiment)["roles"]
        self.assertEqual(roles["learner"]["command"], ["bash", "-c", 'exec "$@" < "$0"', f"{self.folder}/conf", "python", "train.py"])
        self.assertEqual(roles["write-files"]["command"][4:6], [f"{self.folder}/conf", "1\n"])
        self.assertIn("data", self.refusal("python gen.py > data\npython train.py < data\n"))

    def test_the_input_of_a_loop_is_said(self):
        result, _, _ = self.import_text("echo 1 > conf\nfor i in 1; do python train.py; done < conf\n")
        self.assertIn(f"note: line 2: in the script, learner inherits its standard input from the enclosing loop or block ({self.folder}/conf); here it has none", result.stderr)

    def test_variables_of_a_directive(self):
        result, experiment, _ = self.import_text("#SBATCH --export=ALL,A=1,B=2\npython train.py --a $A\n", "--env", "B=3")
        self.assertEqual(yaml.safe_load(experiment)["env"], {"A": "1", "B": "3"})
        self.assertNotIn("--export", result.stderr)

    def test_what_another_job_has_otherwise_is_said(self):
        result, _, _ = self.import_text("export MASTER_PORT=$((10000 + RANDOM % 1000))\nsrun bash -c 'ulimit -l unlimited; python train.py --ip '$(myip)\n", "--prints", "myip=10.1.2.3")
        self.assertIn("note: line 1: $RANDOM differs in each job, but the plan has the number it was here", result.stderr)
        self.assertIn("note: line 2: the plan has 10.1.2.3 as given with --prints", result.stderr)
        self.assertIn("note: line 2: ulimit -l unlimited: not imported\n", result.stderr)

    def test_bash_looks_for_a_port(self):
        text = "port=8000\nwhile (echo > /dev/tcp/localhost/$port) 2> /dev/null; do port=$((port + 1)); done\npython -m http.server $port &\n" \
               "until (echo > /dev/tcp/$(hostname)/$port) 2> /dev/null; do sleep 1; done\npython train.py\n"
        result, experiment, _ = self.import_text(text)
        self.assertEqual(yaml.safe_load(experiment)["roles"]["server"]["ready"], {"tcp": "${self.host}:8000", "timeout": "10m"})
        self.assertIn("note: line 2: the script checks whether this port is in use; while recording, it was free\n", result.stderr)

    def test_the_id_of_a_job_that_it_submits_is_of_no_use(self):
        self.assertIn("a command of the script contains the id of a job that the script submits itself (424243, from sbatch): remove that from the script. `walltime: {then: requeue}` continues in a new job",
                      self.refusal("#SBATCH --gpus-per-node=4\nexport RETRY=$(sbatch --parsable --dependency=afterany:1 $0)\npython train.py\n"))

    def test_an_empty_host_is_no_host(self):
        for line in ("ray start --head --node-ip-address=$IP", "ray start --address :6379", "torchrun --rdzv_endpoint=$IP:29500 train.py", "python train.py --master_addr ''"):
            with self.subTest(line):
                self.assertIn("has no host", self.refusal(f"#SBATCH --gpus-per-node=4\n{line}\npython train.py\n"))
        self.assertEqual(self.roles("gunicorn --bind :8000 a:b &\npython train.py --zip= --host h\n")["learner"]["command"], ["python", "train.py", "--zip=", "--host", "h"])

    def test_a_file_that_the_script_edits_may_be_named_by_its_stem(self):
        (self.folder / "cfgs").mkdir()
        (self.folder / "cfgs/teacher_rlt.yaml").write_text("host: x\n")
        _, experiment, _ = self.planned("sed -i \"s/^host:.*/host: $(hostname)/\" cfgs/teacher_rlt.yaml\npython train.py run@=teacher_rlt\n")
        self.assertEqual(experiment["roles"]["write-files"]["command"][-2:], ["host: ${role.learner.0.host}\n", "644"])

    def test_a_here_document_is_a_program(self):
        self.assertEqual(self.roles("python - --x 1 <<EOF\nprint('a')\nEOF\n")["learner"]["command"], ["python", "-c", "print('a')\n", "--x", "1"])


class GivenBySomebodyElse(Import):
    """What the script itself does not start: nodes on which others start it, files that it writes, jobs that it submits."""

    PER_NODE = ("--per-node", "--nodes", "2", "--gpus", "4", "--env", "RANK={node}", "--env", "MASTER_ADDR={first}")

    def test_somebody_starts_it_on_each_node(self):
        roles = self.roles("torchrun --nnodes $1 --nproc_per_node 4 --node_rank $RANK --master_addr $MASTER_ADDR train.py --on $2\n", *self.PER_NODE, "--", "{nodes}", "{host}")
        self.assertEqual((roles["learner"]["per_node"], roles["learner"]["gpus"], roles["learner"]["command"]), (1, 4, [
            "torchrun", "--nnodes", "2", "--nproc_per_node", "4", "--node_rank", "${self.index}", "--master_addr", "${role.learner.0.host}", "train.py", "--on", "${self.host}"]))
        said = self.refusal("torchrun --nproc_per_node 4 train.py\n", "--nodes", "2", "--gpus", "4")
        self.assertIn("pass --per-node, and use --env for the node's number and the first host: --per-node --env RANK={node} --env MASTER_ADDR={first}", said)

    def test_a_node_that_waits_for_ever_is_not_the_last(self):
        waits = "while sleep 5; do :; done\n"
        given = ("--per-node", "--nodes", "3", "--gpus", "4", "--env", "RANK={node}")
        roles = self.roles("[ $RANK = 2 ] || exec python train.py --rank $RANK\n" + waits, *given)
        self.assertEqual((roles["learner"]["count"], roles["learner"]["command"][-1]), (2, "${self.index}"))
        self.assertIn("The script waits at line 1 for something that does not happen here.", self.refusal(waits + "python train.py\n", *given))

    def test_a_node_on_which_it_fails(self):
        self.assertIn("The script exited with 3 at line 1", self.refusal("[ $RANK = 0 ] || exit 3\npython train.py\n", *self.PER_NODE))

    def test_of_many_nodes_the_first_the_second_and_the_last(self):
        roles = self.roles("#SBATCH --nodes=200 --ntasks-per-node=4 --gpus-per-node=4\nsrun bash -c 'python train.py $SLURM_PROCID $SLURM_NODEID $(date +%s%N | cut -c-3)'\n")
        self.assertEqual((roles["learner"]["per_node"], roles["learner"]["command"][:4]), (4, ["python", "train.py", "${self.index}", "${self.node}"]))

    def test_a_file_that_it_writes(self):
        script = TWO_NODES + "mkdir -p conf\necho '{\"a\": \"${b}\"}' > conf/ds.json\nscontrol show hostnames > hosts\nchmod +x hosts\nsrun python train.py --config=conf/ds.json $PWD/hosts\n"
        _, experiment, _ = self.planned(script)
        self.assertEqual(experiment["start"], [["write-files"], ["learner"]])
        role = experiment["roles"]["write-files"]
        self.assertEqual((role.get("per"), ready_of(role), role["command"][4:]), (None, "exited", [
            f"{self.folder}/conf/", "", "755", f"{self.folder}/conf/ds.json", '{"a": "$${b}"}\n', "644", f"{self.folder}/hosts", "${role.learner.0.host}\n${role.learner.1.host}\n", "755"]))

    def test_the_command_that_writes_files_does_so(self):
        _, experiment, _ = self.planned("printf 'a\\n$b' > new/x y\ntrue > f; chmod +x f\npython train.py new/x f\n".replace("new/x y", "x"), "--gpus", "1")
        for folder in (self.folder / "other",):
            folder.mkdir()
            words = [word.replace(str(self.folder), str(folder / "deep")) for word in experiment["roles"]["write-files"]["command"]]
            subprocess.run(words, check=True)
            self.assertEqual(((folder / "deep/f").read_text(), (folder / "deep/f").stat().st_mode & 0o777), ("", 0o755))

    def test_a_file_for_each_step_as_it_is_then(self):
        _, experiment, _ = self.planned("for i in 1 2 1; do echo $i > c.txt; python run.py c.txt; done\n", "--gpus", "1")
        texts = [role["command"][5] for name, role in experiment["roles"].items() if name.startswith("write-files")]
        self.assertEqual((texts, len(experiment["start"])), (["1\n", "2\n", "1\n"], 6))

    def test_a_file_that_each_task_writes(self):
        roles = self.roles(TWO_NODES + "srun bash -c 'echo $SLURM_NODEID > /tmp/rank; python train.py /tmp/rank'\n")
        self.assertEqual((roles["write-files"]["per"], roles["write-files"]["command"][4:]), ("node", ["/tmp/rank", "${self.index}\n", "644"]))

    def test_a_task_of_its_own_among_many(self):
        script = "#SBATCH --nodes=20 --ntasks-per-node=1 --gpus-per-node=4\nsrun bash -c '%s'\n"
        for branch in ("if [ $SLURM_NODEID -eq 5 ]; then python eval.py; else python train.py; fi", "case $SLURM_NODEID in 5) python eval.py;; *) python train.py;; esac",
                       "((SLURM_NODEID == 5)) && exec python eval.py; python train.py"):
            with self.subTest(branch):
                _, experiment, _ = self.planned(script % branch)
                self.assertEqual(experiment["pools"], {"nodes-0-4": {"nodes": 5}, "nodes-5": {"nodes": 1}, "nodes-6-19": {"nodes": 14}})
                self.assertEqual({name: (role["pool"], role["per_node"]) for name, role in experiment["roles"].items()},
                                 {"learner": (["nodes-0-4", "nodes-6-19"], 1), "eval": ("nodes-5", 1)})

    def test_a_copy_that_is_edited(self):
        (self.folder / "a.yaml").write_text("lr: 1\n")
        _, experiment, _ = self.planned("cp a.yaml b.yaml\nsed -i s/1/2/ b.yaml\npython train.py b.yaml\n", "--gpus", "1")
        self.assertEqual((experiment["start"], experiment["roles"]["write-files"]["command"][5]), ([["cp"], ["write-files"], ["learner"]], "lr: 2\n"))
        _, experiment, _ = self.planned("cp a.yaml b.yaml\npython train.py b.yaml\n", "--gpus", "1")
        self.assertEqual(experiment["start"], [["cp"], ["learner"]])
        self.assertIn("line 1 reads ", self.refusal("sed -i s/1/2/ /no/such.yaml\npython train.py /no/such.yaml\n"))

    def test_what_it_prints_beside_a_log(self):
        for script in ("python train.py --log a.log 2>&1 | tee -a a.log\n", "mkdir -p out\npython train.py --output out > out/log\n"):
            with self.subTest(script):
                command = self.roles(script, "--gpus", "1").get("write-files", {}).get("command", [])
                self.assertEqual([word for word in command[4:] if "log" in word], [])

    def test_what_a_program_prints_for_another_one(self):
        self.assertIn("line 2: a program uses ", self.refusal("python make.py > d.yaml\npython train.py --config d.yaml\n"))

    def test_a_file_that_changes_between_programs_side_by_side(self):
        self.assertIn("which the script overwrites while", self.refusal("for i in 1 2; do echo $i > c.txt; python run.py c.txt & done\nwait\n", "--gpus", "2"))

    def test_a_file_that_cannot_be_written(self):
        self.assertIn("which the script writes itself, but which is not text or is larger than 64 KiB",
                      self.refusal("head -c 70000 /dev/zero | tr '\\0' a > big.txt\npython train.py big.txt\n"))

    def test_a_file_that_nobody_is_told_of(self):
        result, _, _ = self.import_text("echo a > hostfile\npython train.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"note: the script writes {self.folder}/hostfile, which no program is given: it is not written\n", result.stderr)

    def test_a_wait_for_what_no_role_is_known_to_answer(self):
        _, experiment, _ = self.planned("bash serve.sh &\nuntil curl -sf localhost:9000/up; do sleep 5; done\npython train.py\n", "--gpus", "1", "--exists", "serve.sh")
        self.assertEqual(experiment["roles"]["wait"]["command"], ["bash", "-c", 'until "$@"; do sleep 5; done', "wait", "curl", "-sf", "localhost:9000/up"])
        self.assertEqual(experiment["start"][-2:], [["wait"], ["learner"]])

    def test_what_else_curl_does(self):
        script = "bash serve.sh &\nuntil [ \"$(curl -s -o /dev/null -w '%{http_code}' localhost:9000/up)\" = 200 ]; do sleep 5; done\npython train.py\n"
        _, experiment, _ = self.planned(script, "--gpus", "1", "--exists", "serve.sh")
        self.assertEqual(experiment["roles"]["wait"]["command"][2], "until \"$@\" | grep -q '200$'; do sleep 5; done")
        self.assertIn("line 1: this curl sends a single request to localhost:9000, which no role can do", self.refusal("curl -X POST localhost:9000/start -d {}\npython train.py\n"))
        self.assertIn("note: line 1: this curl sends a single request to localhost:9000: it is not imported\n", self.import_text("curl -d {} localhost:9000/v1/completions\npython train.py\n")[0].stderr)
        self.assertIn("note: line 1: this curl sends a request to example.org, which is not a host of the job: it is not imported\n", self.import_text("curl -O https://example.org/a\npython train.py\n")[0].stderr)
        self.assertIn("line 3: a task of a step waits for an answer to `curl -sf rec-node-0:9000/up`", self.refusal(TWO_NODES + "srun bash -c 'until curl -sf rec-node-0:9000/up; do sleep 5; done; python train.py'\n"))

    def test_a_task_of_an_array(self):
        script = "#SBATCH --array=0-9\npython train.py $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX\n"
        self.assertEqual(self.roles(script, "--env", "SLURM_ARRAY_TASK_ID=8")["learner"]["command"][2:], ["8", "10", "0", "9"])
        self.assertIn("this is one task of the array, 8.", self.import_text(script, "--env", "SLURM_ARRAY_TASK_ID=8")[0].stderr)
        self.assertIn("SLURM_ARRAY_TASK_ID=10: no such task in the job array; --array=0-9 has tasks 0 to 9", self.refusal(script, "--env", "SLURM_ARRAY_TASK_ID=10"))

    def test_what_is_in_a_file_that_only_seems_to_be_there(self):
        for script in ("[ $(jq length data.json) -gt 0 ] && python more.py\n", "grep -q a data.json && python more.py\n", "while read x; do python $x; done < data.json\n", "N=$(wc -l < data.json)\n"):
            with self.subTest(script):
                self.assertIn("line 1 reads $FOLDER/data.json, which is known to exist, but not its contents", self.refusal(script + "python train.py\n", "--exists", "data.json"))
        self.assertIn("reads $FOLDER/out.txt, which is known to exist, but not its contents", self.refusal("python a.py > out.txt\nN=$(wc -l < out.txt)\npython train.py --n $N\n"))
        said = self.refusal("N=$(cat data.json)\npython train.py $N\n")
        self.assertIn("Import on a machine that has it, or give the output of the command (--prints 'PART OF THE COMMAND=TEXT')", said)
        self.assertNotIn("--exists", said)
        self.assertIn(f"note: line 1: {self.folder}/env.sh is treated as empty: what it sets is not imported\n", self.import_text("source env.sh\npython train.py\n", "--exists", "env.sh")[0].stderr)

    def test_an_srun_or_a_submission_says_how_many_nodes(self):
        asks = "srun -p gpu --nodes=4 --ntasks-per-node=1 --gres=gpu:8 --quotatype=reserved python train.py\n"
        _, experiment, profile = self.planned(asks)
        self.assertEqual((experiment["nodes"], profile["scheduler"]["submit"]), (4, ["sbatch", "--quotatype=reserved"]))
        self.assertIn("line 1 already requests 4 nodes, but --nodes is 2: omit --nodes", self.refusal(asks, "--nodes", "2"))
        self.assertIn("line 1 already requests 4 nodes, but --nodes is 2: omit --nodes", self.refusal("sbatch -N 4 --gpus-per-node=8 --wrap 'python train.py'\n", "--nodes", "2"))
        self.assertIn("line 3: srun --nodes=4: the job has 2 nodes, so Slurm does not start the step", self.refusal(TWO_NODES + "srun -N 4 python train.py\n"))

    def test_the_one_job_that_it_submits(self):
        for script, command in (
                ("export A=b\nsbatch -N 2 --gpus-per-node=4 <<EOF\n#!/bin/bash\nsrun python train.py \\$A\nEOF\n", ["python", "train.py", "b"]),
                ("sbatch --nodes=2 --gpus-per-node 4 --wrap 'srun python train.py c'\n", ["python", "train.py", "c"]),
                ("echo \"srun python train.py \\$1\" > in.sh\nsbatch --nodes=2 --gpus-per-node=4 in.sh d\n", ["python", "train.py", "d"])):
            with self.subTest(script):
                _, experiment, profile = self.planned(script)
                self.assertEqual((experiment["nodes"], experiment["roles"]["learner"]["command"], profile["node"]), (2, command, {"gpus": 4}))

    def test_what_the_job_that_it_submits_is_given(self):
        script = ("mkdir -p logs\necho '{}' > ds.json\nC=c sbatch --nodes=1 --gpus-per-node=4 --export=ALL,B=b <<EOF\n#!/bin/bash\ncd logs\npython train.py ${SLURM_NODEID-login} \\$A \\$B \\$C ../ds.json $PWD/ds.json\nEOF\n")
        _, experiment, _ = self.planned(script, "--env", "A=a")
        self.assertEqual((experiment["roles"]["learner"]["command"][2:6], experiment["env"]), (["login", "a", "b", "c"], {"A": "a", "B": "b", "C": "c"}))
        self.assertEqual(experiment["roles"]["write-files"]["command"][-3:], [f"{self.folder}/ds.json", "{}\n", "644"])

    def test_a_script_that_submits_itself(self):
        roles = self.roles('#SBATCH --gpus-per-node=4\nif [ -z "$SLURM_JOB_ID" ]; then export LR=2; sbatch "$0" deep; exit; fi\npython train.py $LR "$1"\n')
        self.assertEqual(roles["learner"]["command"], ["python", "train.py", "2", "deep"])

    def test_a_script_that_somebody_starts_is_in_no_job_of_slurm(self):
        roles = self.roles('[ -n "$SLURM_JOB_ID" ] && exec python slurm.py\npython train.py "$SLURM_PROCID"\n', *self.PER_NODE)
        self.assertEqual(roles["learner"]["command"], ["python", "train.py", ""])

    def test_an_srun_that_asks_for_the_job(self):
        _, experiment, profile = self.planned("srun -p gpu -t 60 --nodes=2 --ntasks-per-node=1 --gres=gpu:8 -o log torchrun --nproc_per_node 8 train.py\n")
        self.assertEqual((experiment["nodes"], experiment["slurm"], experiment["roles"]["learner"]["gpus"]), (2, {"time": 60}, 8))
        self.assertEqual(profile["scheduler"]["directives"], {"partition": "gpu", "gres": "gpu:8"})
        self.assertIn("this srun requests the job itself (--partition=b)", self.refusal("srun -p a python a.py\nsrun -p b python train.py\n"))

    def test_a_server_whose_gpus_are_rays(self):
        roles = self.roles(TWO_NODES + "srun -N1 -w rec-node-0 ray start --head --port=6379 --block &\nsleep 9\nsrun -N1 -w rec-node-1 ray start --address=rec-node-0:6379 --block &\nsleep 9\n"
                           "vllm serve m --tensor-parallel-size 4 --pipeline-parallel-size 2\n")
        self.assertEqual((roles["server"]["kind"], roles["server"]["ends_run"], roles["server"]["wrapper"], roles["engine"]), ("service", True, ["env", "-u", "CUDA_VISIBLE_DEVICES"], {
            "kind": "engine", "per_node": 4, "gpus": 1, "spawned_by": ["ray-head", "ray-worker"], "classify": "ray::*"}))

    def test_what_is_only_shown_needs_no_answer(self):
        roles = self.roles('echo "Python: $(python -c "import torch; print(torch.version.cuda)" 2>&1)"\npython train.py\n', "--gpus", "1")
        self.assertEqual(roles["learner"]["command"], ["python", "train.py"])


class Ends(Import):
    def test_what_trains_has_from_the_signal_to_the_limit(self):
        script = "#SBATCH --gpus-per-node=2\n#SBATCH --signal=USR1@600\nvllm serve m --tensor-parallel-size 1 &\nsleep 9\nCUDA_VISIBLE_DEVICES=1 torchrun --nproc_per_node 1 train.py\n"
        _, experiment, _ = self.planned(script)
        self.assertEqual(experiment["walltime"], {"signal": "USR1", "before": "600s", "then": "stop"})
        self.assertEqual({name: role.get("stop") for name, role in experiment["roles"].items()}, {"engine": None, "learner": {"grace": "600s"}})


class SharedGpus(Import):
    def test_programs_on_the_same_gpus_share_them(self):
        begin = "#SBATCH --gpus-per-node=4\n"
        for script, wanted in (
                ("CUDA_VISIBLE_DEVICES=0 vllm serve m &\nsleep 9\nCUDA_VISIBLE_DEVICES=0 python train.py\n",
                 {"engine": (1, "learner"), "learner": (1, None)}),
                ("CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve m --tensor-parallel-size 4 &\nsleep 9\npython train.py\n",
                 {"engine": (4, None), "learner": (4, "engine")}),
                ("vllm serve m --tensor-parallel-size 2 &\nsleep 9\ntorchrun --nproc_per_node 4 train.py\n",
                 {"engine": (2, "learner"), "learner": (4, None)}),
                ("CUDA_VISIBLE_DEVICES=2 vllm serve m &\nCUDA_VISIBLE_DEVICES=3 vllm serve n --port 8001 &\nsleep 9\n"
                 "CUDA_VISIBLE_DEVICES=2,3 torchrun --nproc_per_node 2 train.py\n",
                 {"engine": (1, "learner"), "engine-2": (1, "learner"), "learner": (2, None)})):
            with self.subTest(script):
                _, experiment, _ = self.planned(begin + script)
                self.assertEqual({name: (role["gpus"], role.get("share_gpus_with")) for name, role in experiment["roles"].items()}, wanted)


class Components(Import):
    """A heterogeneous job: each component is a pool."""
    HEAD = "#SBATCH -N1 --mem=8G -p cpu -t 1:00:00\n#SBATCH hetjob\n#SBATCH -N2 -p gpu --gres=gpu:4 --ntasks-per-node=2 --cpus-per-task=4 -t 1:00:00\n"

    def experiment(self, body):
        result, experiment, profile = self.planned(self.HEAD + body)
        return result, experiment, profile

    def test_what_all_ask_for_is_the_jobs(self):
        _, experiment, profile = self.experiment("srun --het-group=1 --gpus-per-task=2 python train.py &\npython serve_metrics.py\nwait\n")
        self.assertEqual(experiment["pools"], {
            "group-0": {"nodes": 1, "gpus": 0, "slurm": {"mem": "8G", "partition": "cpu"}},
            "group-1": {"nodes": 2, "gpus": 4, "slurm": {"partition": "gpu", "gres": "gpu:4", "cpus-per-task": 8}}})
        self.assertEqual(experiment["slurm"], {"time": "1:00:00"})
        self.assertNotIn("directives", profile["scheduler"])
        roles = experiment["roles"]
        self.assertEqual({name: (role["pool"], role.get("per_node"), role.get("gpus")) for name, role in roles.items()},
                         {"learner": ("group-1", 2, 2), "serve-metrics": ("group-0", None, None)})

    def test_variables_are_those_of_slurm(self):
        _, experiment, _ = self.experiment("srun --het-group=1 python train.py $SLURM_HET_SIZE $SLURM_JOB_NUM_NODES $SLURM_JOB_NUM_NODES_HET_GROUP_1 "
                                           "$(scontrol show hostnames $SLURM_JOB_NODELIST_HET_GROUP_1 | tail -1) $(scontrol show hostnames | wc -l)\n")
        self.assertEqual(experiment["roles"]["learner"]["command"], ["python", "train.py", "2", "1", "2", "${role.learner.2.host}", "1"])

    def test_a_step_without_the_option_is_in_the_first(self):
        _, experiment, _ = self.experiment("srun python prepare.py\nsrun --het-group=1 python train.py\n")
        self.assertEqual({name: role["pool"] for name, role in experiment["roles"].items()}, {"prepare": "group-0", "learner": "group-1"})

    def test_the_older_words(self):
        script = "#SBATCH -N2 --gpus-per-node=4\n#SBATCH packjob\n#SBATCH -N1 -p cpu\nsrun python train.py &\nsrun --pack-group=1 python serve.py &\nwait\n"
        _, experiment, profile = self.planned(script)
        self.assertEqual({name: role["pool"] for name, role in experiment["roles"].items()}, {"learner": "group-0", "serve": "group-1"})
        self.assertNotIn("srun", profile["scheduler"])

    def test_a_component_that_runs_nothing(self):
        _, experiment, _ = self.planned("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=4\n#SBATCH hetjob\n#SBATCH --nodes=1\npython train.py\n")
        self.assertEqual(experiment["roles"]["learner"]["pool"], "group-0")

    def test_a_node_number_that_no_reference_counts_is_said(self):
        result, experiment, _ = self.import_text("#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2 --gpus-per-node=4\nsrun --het-group=1 --ntasks-per-node=4 python train.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("SLURM_NODEID is not set: it numbers the step's nodes from 0", experiment)

    def test_numbers_on_the_command_line_are_of_no_component(self):
        result, _, _ = self.import_text(self.HEAD + "srun --het-group=1 python train.py\n", "--gpus", "4")
        self.assertEqual(result.returncode, 65)
        self.assertIn("the job is heterogeneous (#SBATCH hetjob), so --gpus is ambiguous", result.stderr)


class MadeUp(Import):
    def test_what_a_page_says_is_said_to_be_made_up(self):
        result, experiment, _ = self.import_text("#SBATCH --gpus-per-node=1\nv=$(curl -s http://hub/version)\npython train.py $v\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("# line 2: the output that `curl -s http://hub/version` gave the script is made up", experiment)
        quiet, _, _ = self.import_text("#SBATCH --gpus-per-node=1\nuntil curl -s http://hub/version > /dev/null; do sleep 1; done\npython train.py\n")
        self.assertNotIn("made up", quiet.stderr)

    def test_the_port_of_text_generation_inference(self):
        for before, port in (("", "3000"), ("export PORT=9375\n", "9375")):
            roles = self.roles("#SBATCH --gpus-per-node=1\n" + before + "text-generation-launcher --model-id m &\nsleep 60\npython bench.py\n")
            self.assertEqual(roles["engine"]["ready"]["http"], f"http://${{self.host}}:{port}/health")


class NodeLists(Import):
    """Programs on nodes that the script picks from its list."""

    def test_nodes_that_run_the_same_programs_are_a_pool(self):
        script = ("#SBATCH --nodes=4 --gpus-per-node=4\nnodes=($(scontrol show hostnames $SLURM_JOB_NODELIST))\n"
                  "srun -N1 -n1 -w ${nodes[3]} vllm serve m --tensor-parallel-size 4 &\n"
                  "srun -N1 -n1 -w ${nodes[3]} python judge.py --port 6000 &\nsleep 60\n"
                  "srun -N3 --ntasks-per-node=1 -w ${nodes[0]},${nodes[1]},${nodes[2]} python train.py\n")
        _, experiment, _ = self.planned(script)
        self.assertEqual(experiment["pools"], {"nodes-0-2": {"nodes": 3}, "nodes-3": {"nodes": 1}})
        self.assertEqual({name: role["pool"] for name, role in experiment["roles"].items()},
                         {"engine": "nodes-3", "judge": "nodes-3", "learner": "nodes-0-2"})


    def test_what_differs_on_the_first_node_alone_takes_no_task_away(self):
        script = TWO_NODES.replace("nodes=2", "nodes=4") + "module load cuda\nexport NODE_RANK=0\nsrun %s train.py\n"
        learner = self.roles(script % "torchrun --nnodes 4")["learner"]
        self.assertEqual((learner["per_node"], learner.get("pool"), learner.get("rendezvous"), learner["env"]["NODE_RANK"]), (1, None, None, "0"))
        result, _, _ = self.import_text((script % "python").replace("NODE_RANK=0", "NODE_RANK=0 MASTER_ADDR=$(hostname)"))
        self.assertEqual(result.returncode, REFUSED)
        self.assertIn("learner.3: NODE_RANK is '3', but '0' in the script", result.stderr)

    def test_the_nodes_of_a_server_start_together(self):
        serve = "python3 -m sglang.launch_server --model-path m --tp 8 --dist-init-addr ${n[0]}:5000 --nnodes 2 --port 30000 --node-rank"
        result, experiment, _ = self.import_text(
            TWO_NODES + f"n=($(scontrol show hostnames $SLURM_JOB_NODELIST))\nsrun -N1 -n1 -w ${{n[0]}} {serve} 0 &\nsleep 10\n"
            f"srun -N1 -n1 -w ${{n[1]}} {serve} 1 &\nuntil nc -z ${{n[0]}} 30000; do sleep 5; done\npython client.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(yaml.safe_load(experiment)["start"], [["engine", "engine-2"], ["client"]])
        self.assertIn("note: line 6: it starts together with the server of line 4, which answers only once all of its nodes are there", result.stderr)

    def test_an_engine_starts_before_what_ends_the_run(self):
        result, experiment, _ = self.import_text(
            TWO_NODES + "h=($(scontrol show hostnames $SLURM_JOB_NODELIST))\nsrun -N1 -n1 -w ${h[0]} torchrun --nproc_per_node 4 train.py &\n"
            "srun -N1 -n1 -w ${h[1]} trl vllm-serve --model m &\nwait\n")
        self.assertEqual((result.returncode, yaml.safe_load(experiment)["start"]), (0, [["engine"], ["learner"]]), result.stderr)
        self.assertIn("note: line 4: trl (line 5) starts before torchrun, which ends the run: the script starts it after that, and waits for neither\n",
                      result.stderr)

    def test_what_the_script_says_itself_is_no_reference(self):
        learner = self.roles("python train.py --seed 424242 --port 42777 --peer 10.77.0.2 --job $SLURM_JOB_ID.x\n")["learner"]
        self.assertEqual(learner["command"], ["python", "train.py", "--seed", "424242", "--port", "42777", "--peer", "10.77.0.2", "--job", "${run.id}.x"])
        self.assertEqual(self.roles("#SBATCH --nodes=1\npython train.py --job $SLURM_JOB_ID\n")["learner"]["command"][3], "${run.id}")

    def test_where_conda_is(self):
        for script, prefix in (("source ~/conda/miniconda/bin/activate\nconda activate e\n", "${env.HOME}/conda/miniconda/envs/e"),
                               ('eval "$(/opt/anaconda/bin/conda shell.bash hook)"\nconda activate e\n', "/opt/anaconda/envs/e"),
                               ("source ~/miniforge/bin/activate\nconda activate e\n", "${env.HOME}/miniforge/envs/e"),
                               ("source ~/miniconda3/etc/profile.d/conda.sh\nconda activate e\n", "${env.HOME}/miniconda3/envs/e")):
            with self.subTest(script):
                result, experiment, _ = self.import_text(script + "python train.py\n")
                self.assertEqual(result.returncode, 0, result.stderr)
                made = yaml.safe_load(experiment)
                self.assertEqual((made["env"]["set"]["CONDA_PREFIX"], made.get("venv")), (prefix, None))
                self.assertNotIn("is assumed to be in", result.stderr)

    def test_what_jq_finds_in_an_answer_is_waited_for(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nvllm serve m --port 8000 &\n"
                                        "until curl -s localhost:8000/v1/models | jq -e '.data[0].id' > /dev/null; do sleep 5; done\npython client.py\n")
        self.assertEqual(experiment["start"], [["engine"], ["learner"]])
        self.assertEqual(experiment["roles"]["engine"]["ready"]["http"], "http://127.0.0.1:8000/v1/models")

    def test_a_log_behind_tee_is_waited_for(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nvllm serve m 2>&1 | tee server.log &\n"
                                        "until grep -q 'startup complete' server.log; do sleep 5; done\npython client.py\n")
        self.assertEqual(experiment["start"], [["engine"], ["learner"]])
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nvllm serve m > server.log 2>&1 &\n"
                                        "while ! cat server.log | grep -q 'startup complete'; do sleep 5; done\npython client.py\n")
        self.assertEqual(experiment["start"], [["engine"], ["learner"]])

        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nvllm serve m > vllm_error.log 2>&1 &\n"
                                        "until grep -q 'startup complete' vllm_error.log; do sleep 5; done\npython client.py\n")
        self.assertEqual(experiment["start"], [["engine"], ["learner"]])
        # Nothing goes wrong here.
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=4\nvllm serve m > server.log 2>&1 &\nsleep 5\n"
                                        "if cat server.log | grep -qi 'out of memory'; then exit 1; fi\npython client.py\n")
        self.assertEqual(experiment["start"], [["engine"], ["learner"]])

    def test_an_environment_is_not_conda(self):
        made = self.planned("set -a; source /data/venv/bin/activate; set +a\npython train.py\n")[1]
        self.assertEqual((made["venv"], made.get("env")), ("/data/venv", None))
        made = self.planned("source /data/venv/bin/activate\nconda activate rl\npython train.py\n")[1]
        self.assertEqual(made["env"]["set"]["CONDA_PREFIX"], "${env.HOME}/miniconda3/envs/rl")

    def test_two_servers_over_nodes_are_apart(self):
        serve = "python3 -m sglang.launch_server --model-path m --tp 8 --nnodes 2"
        script = "".join(f"srun -N1 -n1 -w ${{n[{node}]}} {serve} --dist-init-addr ${{n[{first}]}}:5000 --port {port} --node-rank {rank} &\n{wait}"
                         for node, first, rank, port, wait in ((0, 0, 0, 30000, ""), (1, 0, 1, 30000, "until nc -z ${n[0]} 30000; do sleep 5; done\n"),
                                                               (2, 2, 0, 31000, ""), (3, 2, 1, 31000, "until nc -z ${n[2]} 31000; do sleep 5; done\n")))
        _, experiment, _ = self.planned(TWO_NODES.replace("nodes=2", "nodes=4") + "n=($(scontrol show hostnames))\n" + script + "python client.py\n")
        self.assertEqual(experiment["start"], [["engine", "engine-2"], ["engine-3", "engine-4"], ["client"]])

    def test_a_server_that_a_task_leaves_behind_does_not_end_the_run(self):
        roles = self.roles(TWO_NODES + "srun bash -c 'python server.py --port 7000 & sleep 20; torchrun --nproc_per_node 4 train.py'\n")
        self.assertEqual(roles["server"]["exit"], "ok")
        self.assertNotIn("ends_run", roles["server"])
        self.assertEqual(roles["server"]["ready"], {"delay": "20s"})

    def test_files_that_are_made_anew_are_said(self):
        (self.folder / "base.yaml").write_text("a: 1\n")
        result, _, _ = self.import_text("cp base.yaml run.yaml\necho 'steps: 100' >> run.yaml\npython train.py --config run.yaml\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("run.yaml with the text that the script made of it here: later changes of what it is made from are lost\n", result.stderr)

    def test_a_program_that_is_killed_at_once_is_recorded(self):
        for _ in range(3):
            roles = self.roles("#SBATCH --gpus-per-node=2\nenv CUDA_VISIBLE_DEVICES=0 python judge.py --port 7001 & J=$!\nCUDA_VISIBLE_DEVICES=1 python train.py\nkill $J\n")
            self.assertEqual(list(roles), ["judge", "learner"])

    def test_a_shell_may_get_its_commands_as_input(self):
        """srun gives each task all of its input."""
        roles = self.roles(TWO_NODES + "srun bash <<'EOF'\necho hello\npython train.py --rank $SLURM_PROCID\nEOF\n")
        self.assertEqual(roles["learner"]["command"], ["python", "train.py", "--rank", "${self.index}"])
        self.assertEqual(roles["learner"]["per_node"], 1)
        roles = self.roles(TWO_NODES + "for h in $(scontrol show hostnames); do ssh $h bash -s <<'EOF' &\npython train.py\nEOF\ndone\nwait\n")
        self.assertEqual(roles["learner"]["command"], ["python", "train.py"])

    def test_a_shell_with_its_commands_as_input_may_have_arguments(self):
        roles = self.roles("bash -s -- --lr 1 <<'EOF'\npython train.py \"$@\"\nEOF\n")
        self.assertEqual(roles["learner"]["command"], ["python", "train.py", "--lr", "1"])

    def test_programs_in_a_loop_that_are_tested_are_no_poll(self):
        roles = self.roles("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=0 vllm serve m --port 8000 &\nuntil curl -sf localhost:8000/health; do sleep 5; done\n"
                           "for c in a b; do\n  if CUDA_VISIBLE_DEVICES=1 python eval.py --c $c; then\n    echo ok\n  else\n    echo failed\n  fi\ndone\n")
        self.assertEqual(len(roles), 3)

    def test_a_log_may_be_followed_until_a_line_comes(self):
        roles = self.roles("set -e\n#SBATCH --gpus-per-node=2\nvllm serve m --port 8000 > s.log 2>&1 &\ntail -fn0 s.log | grep -qm1 startup\npython eval.py\n")
        self.assertEqual(list(roles), ["engine", "learner"])

    def test_tasks_of_ibrun_begin_at_an_offset(self):
        roles = self.roles("#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4\nibrun -n 4 -o 0 task_affinity python a.py &\nibrun -n 4 -o 4 python b.py &\nwait\n")
        self.assertEqual(sorted(role["command"] for role in roles.values()), [["python", "a.py"], ["python", "b.py"]])

    def test_a_login_by_ssh_has_the_name_of_its_user(self):
        _, experiment, _ = self.planned(TWO_NODES + "for h in $(scontrol show hostnames); do ssh $h \"cd $PWD && python train.py\" & done; wait\n")
        self.assertNotIn("env", experiment)

    def test_a_job_may_be_kept_by_tail(self):
        result, experiment, _ = self.import_text("#SBATCH --gpus-per-node=1\nvllm serve m --port 8000 &\ntail -f /dev/null\n")
        self.assertEqual((result.returncode, list(yaml.safe_load(experiment)["roles"])), (0, ["engine"]), result.stderr)

    def test_what_a_module_may_set_is_said(self):
        result, _, profile = self.import_text("module load cuda\nexport CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}\npython train.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("# line 2: CUDA_HOME has this value only if no module sets it (line 1): here it always has\n", profile)

    def test_what_slurm_sets_only_when_asked_is_known(self):
        learner = self.roles("#SBATCH --gpus-per-node=4 --cpus-per-gpu=18 --mem=120G --mem-per-gpu=30G\n#SBATCH --nodes=2\n"
                             "srun python train.py $((SLURM_CPUS_PER_GPU - 2)) $((SLURM_MEM_PER_NODE / 1024)) $SLURM_MEM_PER_GPU $SLURM_JOB_CPUS_PER_NODE\n")["learner"]
        self.assertEqual(learner["command"], ["python", "train.py", "16", "120", "30720", "72(x2)"])

    def test_names_in_arithmetic_that_are_set_are_not_asked_for(self):
        result = self.import_text("#SBATCH --gpus-per-node=1\nN=4; A=(a b)\nfor ((i = 0; i < N; i++)); do :; done\n((j = 3, k = 5))\n(( count++ )) || true\n"
                                  "x=$((16#ff + ${#A[@]} + j % k))\ny=$(( $(date +%s) % 100 ))\nz=$(((N + 1) * 2))\nif (( EUID == 0 )); then :; fi\n"
                                  "read -r u v <<< '1 2'\nw=$((u + v))\npython train.py $x $z $w\n")[0]
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("nothing sets", result.stderr)

    def test_modules_may_be_loaded_without_a_word(self):
        result, _, profile = self.import_text("module --quiet purge\nmodule -q load cuda\npython train.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("reset: true", profile)
        self.assertIn("cuda", profile)

    def test_a_server_that_is_a_script_is_ready_as_the_script_says(self):
        experiment = yaml.safe_load(self.import_text(
            "#SBATCH --gpus-per-node=4\npython vllm_server.py &\nuntil curl -fsS http://localhost:8005/docs; do sleep 5; done\n"
            "CUDA_VISIBLE_DEVICES=1,2,3 python train.py\n")[1])
        self.assertNotIn("ready", experiment["roles"]["engine"])
        self.assertEqual(experiment["roles"]["wait"]["command"][3:], ["wait", "curl", "-fsS", "http://localhost:8005/docs"])
        self.assertEqual(experiment["start"], [["engine"], ["wait"], ["learner"]])

    def test_a_file_of_an_option_is_not_the_server(self):
        engine = self.roles("#SBATCH --gpus-per-node=4\nvllm serve m --port 8005 --tool-parser-plugin plug.py &\nsleep 60\n"
                            "CUDA_VISIBLE_DEVICES=1,2,3 python train.py\n")["engine"]
        self.assertIn(":8005/health", engine["ready"]["http"])

    def test_ray_is_whole_with_the_gpus_that_it_was_given(self):
        head = ("N=($(scontrol show hostnames))\nsrun --overlap -N1 -n1 -w ${N[0]} ray start --head --port=6379 --block ARGS &\nsleep 9\n"
                "srun --overlap -N1 -n1 -w ${N[1]} ray start --address=${N[0]}:6379 --block ARGS &\nsleep 9\nray status\npython train.py\n")
        for arguments, whole in (("", "get('GPU', 0) < 8)"), ("--temp-dir=/scratch/OUTPUT/ray", "get('GPU', 0) < 8)"), ("--num-gpus=3", "get('GPU', 0) < 6)"),
                                 ("--num-gpus=0", "sum(node['Alive'] for node in ray.nodes()) < 2)"),
                                 ("--resources='{\"NPU\": 8}'", "sum(node['Alive'] for node in ray.nodes()) < 2)")):
            with self.subTest(arguments):
                roles = self.roles(TWO_NODES.replace("--nodes=2", "--nodes=3") + head.replace("ARGS", arguments))
                self.assertIn(whole, roles["ray-worker"]["ready"]["exec"][2])

    def test_a_watch_at_the_end_is_the_end(self):
        result, experiment, _ = self.import_text(TWO_NODES + "srun python train.py & pid=$!\ndone=false\nwhile ! $done; do\n  done=true\n"
                                                 "  if ps -p $pid > /dev/null; then done=false; fi\n  sleep 60\ndone\necho \"Job terminated\"\n")
        self.assertEqual((result.returncode, list(yaml.safe_load(experiment)["roles"])), (0, ["learner"]), result.stderr)


class Around(Import):
    def test_the_made_up_user_is_in_no_name(self):
        self.assertEqual(self.planned("sbatch -J a-$USER --gpus-per-node=1 --wrap 'python train.py'\n")[1]["name"], "a")

    def test_nothing_is_overwritten(self):
        (self.folder / "a.sbatch").write_text("python train.py\n")
        self.assertEqual(self.run_import("a.sbatch", cwd=self.folder).returncode, 0)
        before = (self.folder / "a.yaml").read_text()
        (self.folder / "a.site.yaml").unlink()
        result = self.run_import("a.sbatch", cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr),
                         (USAGE, "nlaunch import: './a.yaml' already exists: remove it, or choose another --name or --output\n"))
        self.assertEqual((self.folder / "a.yaml").read_text(), before)
        self.assertFalse((self.folder / "a.site.yaml").exists())

    def test_every_command_has_a_row(self):
        (self.folder / "a.sbatch").write_text("ray stop\nsleep 1\ntimeout 5 true\nsrun python train.py\n")
        result = self.run_import("a.sbatch", "--check", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line.split("  ")[0:1] + [line] for line in result.stderr.splitlines() if line[:1].isdigit()]
        self.assertEqual([row[0] for row in rows], ["1", "2", "3", "4", "4"])
        for row, became in zip(rows, ("left out: nlaunch stops what it starts", "waits: `start` and `ready` do", "left out: it starts nothing", "places what follows", "learner")):
            self.assertIn(became, row[1])
        self.assertEqual(list(self.folder.glob("*.yaml")), [])
        self.assertTrue(result.stderr.splitlines()[-1].startswith(SAME))

    def test_what_cannot_be_read(self):
        self.assertIn("is not a text file: import reads sbatch and shell scripts", self.import_text(b"\x7fELF\0\0")[0].stderr)
        self.assertEqual(self.run_import("no-such-file").returncode, REFUSED)
        self.assertEqual(self.import_text(b"python x.py\n" * 1_000_000)[0].returncode, REFUSED)
        for words in (["--stdout", "--output", "x"], ["--name", "a b"], ["--env", "A"], ["--prints", "A"], ["--prints", "A=${self.host}"], ["--check", "--stdout"]):
            self.assertEqual(self.run_import("x", *words).returncode, USAGE)

    def test_odd_texts_arrive(self):
        for script, command in (("python train.py '- x' '{y}' no 1 '' $'\\t' '${x}'\n", ["- x", "{y}", "no", "1", "", "\t", "$${x}"]),
                                ("python train.py 'é \u2028' \"a\nb\"\n", ["é \u2028", "a\nb"])):
            with self.subTest(script):
                self.assertEqual(self.roles(script)["learner"]["command"], ["python", "train.py", *command])


if __name__ == "__main__":
    unittest.main()
