#!/usr/bin/env python3
"""`nlaunch import`: when programs start, which have exited by then, and what ends the run."""
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import REFUSED, SAME, TWO_NODES, Import  # noqa: E402


def ends(roles):
    """The roles whose exit ends the run."""
    return {name for name, role in roles.items() if role.get("ends_run", role["kind"] == "learner")}


class Ends(Import):
    """The run ends when the script would."""

    def test_all_that_the_script_waits_for_ends_the_run(self):
        for script in ("python a.py &\nP=$!\npython b.py\nwait $P\n",
                       "python a.py &\npython b.py\nwait\n",
                       "python a.py &\nP=$!\npython b.py\nwhile kill -0 $P 2>/dev/null; do sleep 1; done\n",
                       "python a.py &\npython b.py\ntail --pid=$! -f /dev/null\n",
                       "touch a.log\npython a.py &\nP=$!\npython b.py\ntail -f --pid=$P a.log\n",
                       "python a.py &\nP=$!\npython b.py\nwhile ps -p $P > /dev/null; do sleep 5; done\n",
                       "run() { python $1.py; }\nrun a &\nrun b &\nwait\n",
                       "(python a.py | tee a.log) &\npython b.py\nwait\n"):
            with self.subTest(script):
                roles = self.roles(script)
                self.assertEqual((len(roles), len(ends(roles))), (2, 2), roles)

    def test_what_is_killed_or_left_does_not(self):
        for script in ("python a.py &\nA=$!\npython b.py &\nB=$!\nwait $B\nkill $A\n",
                       "python a.py &\npython b.py\n",
                       "f() { python a.py; }\nf &\npython b.py\n",
                       "python a.py &\nA=$!\npython b.py\nkill $A\nwait $A\n"):
            with self.subTest(script):
                roles = self.roles(script)
                self.assertEqual(ends(roles), {"learner"})
                self.assertEqual((roles["a"]["exit"], roles["learner"]["command"]), ("ok", ["python", "b.py"]))

    def test_ranks_that_a_script_starts_one_by_one_are_learners(self):
        hosts = "n=($(scontrol show hostnames))\n"
        roles = self.roles(TWO_NODES + hosts + "srun -N1 -n1 -w ${n[1]} python main.py --rank 1 --to ${n[0]} &\n"
                           "srun -N1 -n1 -w ${n[0]} python main.py --rank 0 --to ${n[0]}\nwait\n")
        self.assertEqual([(role["kind"], role["gpus"], role.get("ends_run")) for role in roles.values()], [("learner", 4, None)] * 2)

    def test_one_that_had_exited_is_no_rank_of_the_next(self):
        _, experiment, _ = self.planned("python step.py --number 1 &\nwait\npython step.py --number 2\n")
        self.assertEqual(([role["kind"] for role in experiment["roles"].values()], experiment["start"]), (["task", "learner"], [["step"], ["learner"]]))

    def test_a_wait_for_any_of_several_is_refused(self):
        for wait in ("wait -n", "wait %2"):
            with self.subTest(wait):
                self.assertIn(f"error: line 3: `{wait}` does not say for which program it waits: wait for its process id (PID=$!, then wait "
                              "\"$PID\") [import.wait]\n", self.refusal(f"python a.py &\npython b.py &\n{wait}\n"))


    def test_a_pool_of_so_many_at_once_is_refused(self):
        self.assertIn("error: line 1: the script starts a program when another one has exited (`jobs -rp`): a plan starts all of a stage at once "
                      "[import.wait]\n", self.refusal("for i in 1 2 3; do while [ $(jobs -rp | wc -l) -ge 2 ]; do sleep 1; done; python a.py $i & done\nwait\n"))

    def test_a_limit_on_what_runs_at_once_is_refused(self):
        for count in ("jobs -p | wc -l", "jobs | grep -c Running", "pgrep -c -P $$"):
            with self.subTest(count):
                self.assertIn("the script starts a program when another one has exited", self.refusal(
                    f"for i in 1 2 3; do\n  while [ $({count}) -ge 2 ]; do sleep 1; done\n  python a.py $i &\ndone\nwait\n"))
        self.assertEqual(len(self.roles("trap 'kill $(jobs -p)' EXIT\npython a.py &\npython b.py\n")), 2)

    def test_a_server_stays_as_long_as_the_script_waits(self):
        for end in ("wait", "wait $V", "sleep infinity", "sleep 4h", "while true; do sleep 3600; done"):
            with self.subTest(end):
                _, experiment, _ = self.import_text(f"vllm serve m --port 8000 &\nV=$!\nuntil curl -s localhost:8000/health; do sleep 5; done\npython warm.py\n{end}\n")
                self.assertTrue(yaml.safe_load(experiment)["roles"]["engine"]["ends_run"])
                self.assertIn("# line 1: the script waits for vllm after warm has exited: so does the run. Without its `ends_run`, the run ends before\n", experiment)
        for end in ("", "kill $V\nwait $V\n"):
            with self.subTest(end):
                roles = self.roles(f"vllm serve m --port 8000 &\nV=$!\npython warm.py\n{end}")
                self.assertNotIn("ends_run", roles["engine"])

    def test_a_pipeline_at_the_end_is_all_that_the_script_waits_for(self):
        self.assertEqual(ends(self.roles("python loader.py &\npython train.py 2>&1 | tee train.log\n")), {"learner"})

    def test_what_only_asks_is_no_wait(self):
        roles = self.roles("python train.py &\nP=$!\npython mon.py --host $(hostname) &\nwait $P\n")
        self.assertEqual(ends(roles), {"learner"})

    def test_helpers_that_never_end_do_not_hold_up_the_recording(self):
        for helper in ("while true; do nvidia-smi; sleep 30; done > smi.log &", "nohup bash -c 'while true; do nvidia-smi; sleep 9; done' &",
                       "touch train.log; tail -f train.log &"):
            with self.subTest(helper):
                self.assertEqual(ends(self.roles(helper + "\npython train.py\n", "--gpus", "1")), {"learner"})
        self.assertIn("a loop in the background starts `python upload.py` again and again, which no role does",
                      self.refusal("while sleep 60; do python upload.py; done &\npython train.py\n"))


class Order(Import):
    """What has exited when another program starts."""

    def test_a_shell_in_front_has_waited_for_its_programs(self):
        both = "python a.py &\npython b.py &\nwait\n"
        for script in (f"cat > gen.sh <<'E'\n{both}E\nbash gen.sh\n", f"( {both.strip()} )\n", f"bash -c '{both}'\n", f"all() {{ {both} }}\nall | tee all.log\n"):
            with self.subTest(script):
                _, experiment, _ = self.planned(script + "python merge.py\n")
                self.assertEqual((experiment["roles"]["a"]["kind"], experiment["start"]), ("task", [["a", "b"], ["learner"]]))

    def test_a_shell_that_leaves_programs_has_not(self):
        both = "python a.py &\npython b.py &\n"
        for script in (f"cat > gen.sh <<'E'\n{both}E\nbash gen.sh\n", f"( {both} )\n"):
            with self.subTest(script):
                roles = self.roles(script + "python merge.py\n")
                self.assertEqual((roles["a"]["kind"], roles["a"]["exit"]), ("service", "ok"))

    def different(self, text):
        result, _, _ = self.import_text(text)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        self.assertIn("Not the same job:\n", result.stderr)
        return result.stderr

    def test_a_poll_is_a_wait(self):
        _, experiment, _ = self.planned("python a.py &\nP=$!\nwhile kill -0 $P 2>/dev/null; do sleep 60; done\npython b.py\n")
        self.assertEqual((experiment["start"], experiment["roles"]["a"]["kind"]), ([["a"], ["learner"]], "task"))

    def test_a_check_that_a_server_lives_is_none(self):
        _, experiment, _ = self.planned("#SBATCH --gpus-per-node=2\nCUDA_VISIBLE_DEVICES=0 vllm serve m --port 8000 &\nP=$!\n"
                                        "until curl -sf localhost:8000/health; do kill -0 $P || exit 1; sleep 5; done\nkill -0 $P || exit 1\n"
                                        "CUDA_VISIBLE_DEVICES=1 python train.py\n")
        self.assertEqual([role["kind"] for role in experiment["roles"].values()], ["engine", "learner"])

    def test_one_after_the_other_in_a_subshell(self):
        _, experiment, _ = self.planned("(python a.py; python b.py) &\nwait\n")
        self.assertEqual((experiment["start"], experiment["roles"]["a"]["kind"]), ([["a"], ["learner"]], "task"))
        # Two at once, each of two programs: stages would let each wait for the other's first.
        said = self.different("for s in 0 1; do (python train.py $s; python eval.py $s) & done\nwait\n")
        self.assertRegex(said, r"  line 1: in the plan eval(-2)? starts after learner(-2)? has exited; the script does not wait for that\n")
        said = self.different("(python a.py; python c.py) &\npython b.py\nwait\n")
        self.assertIn("starts after", said)

    def test_what_overlaps_is_not_put_in_a_row(self):
        said = self.different("python a.py 1 &\nsleep 2\npython b.py 2\nwait\npython c.py 3\n")
        self.assertIn("  line 3: in the plan b starts after a has exited; the script does not wait for that\n", said)


    def test_a_loop_that_waits_for_something_unknown_is_refused(self):
        said = self.refusal("python a.py &\nP=$!\nalive() { kill -0 $1 2>/dev/null; }\nwhile alive $P; do sleep 10; done\npython b.py\n")
        self.assertIn("the script waits in a loop (line ", said)
        self.assertIn(") for something that import does not recognise: wait for its exit (wait $PID), for its port (nc, curl), or for a fixed time", said)

    def test_a_fixed_time_is_a_delay(self):
        _, experiment, _ = self.planned("python a.py &\nsleep 60\npython b.py\nwait\n")
        self.assertEqual((experiment["roles"]["a"]["ready"], experiment["start"]), ({"delay": "60s"}, [["a"], ["learner"]]))


class Ports(Import):
    FREE = "$(python -c 'import socket; s=socket.socket(); s.bind((\"\",0)); print(s.getsockname()[1])')"

    def test_a_port_of_the_batch_script_is_one_for_all_ranks(self):
        roles = self.roles(TWO_NODES + f"P={self.FREE}\nsrun bash -c \"torchrun --nnodes 2 --nproc_per_node 4 --node_rank \\$SLURM_NODEID --master_port $P train.py\"\n")
        self.assertEqual(roles["learner"]["command"][-2:], ["${role.learner.0.ports.port}", "train.py"])

    def test_a_port_of_a_task_is_its_own(self):
        text = 'P=$(python -c "import socket; s=socket.socket(); s.bind((str(),0)); print(s.getsockname()[1])"); vllm serve m --port $P --tensor-parallel-size 4'
        roles = self.roles(TWO_NODES + f"srun bash -c '{text}'\n")
        self.assertIn("${self.ports.http}", next(iter(roles.values()))["command"])

    def test_a_port_in_a_variable_alone(self):
        _, experiment, _ = self.planned(f"export PORT={self.FREE}\npython server.py &\nsleep 20\npython train.py --seed 1427775\n")
        self.assertEqual((experiment["env"]["PORT"], experiment["roles"]["server"]["ports"]), ("${role.server.0.ports.port}", ["port"]))
        self.assertEqual(experiment["roles"]["learner"]["command"][-1], "1427775")

    def test_two_ports_are_two(self):
        roles = self.roles(f"A={self.FREE}\nB={self.FREE}\npython train.py --a $A --b $B\n")
        self.assertEqual((roles["learner"]["ports"], roles["learner"]["command"][2:]),
                         (["port", "port2"], ["--a", "${self.ports.port}", "--b", "${self.ports.port2}"]))


class Gpus(Import):
    FOUR_TASKS = "#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4\n"

    def test_tasks_that_get_a_gpu_each_see_that_alone(self):
        for step in ("srun bash -c 'export RANK=$SLURM_PROCID CUDA_VISIBLE_DEVICES=$SLURM_LOCALID; python train.py'\n",
                     "srun --gpus-per-task=1 bash -c 'export RANK=$SLURM_PROCID; python train.py'\n"):
            with self.subTest(step):
                learner = self.roles(self.FOUR_TASKS + step)["learner"]
                self.assertEqual((learner["gpus"], learner.get("rendezvous")), (1, None))

    def test_tasks_that_see_all_gpus_pick_by_their_local_rank(self):
        for step in ("srun --gpu-bind=none python train.py\n", "srun python train.py\n"):
            with self.subTest(step):
                learner = self.roles(self.FOUR_TASKS + step)["learner"]
                self.assertEqual((learner["per_node"], learner["gpus"], learner["rendezvous"]), (4, 1, "torch"))
        roles = self.roles(self.FOUR_TASKS + "srun bash -c 'LOCAL_RANK=$SLURM_LOCALID python embed.py'\npython summarize.py\n")
        self.assertEqual((roles["embed"]["kind"], roles["embed"]["rendezvous"]), ("task", "torch"))

    def test_gpus_of_a_step_on_one_node_are_those_of_that_step(self):
        roles = self.roles(TWO_NODES + "for n in $(scontrol show hostnames); do srun -N1 -n1 -w $n --gpus=4 python eval.py & done\nwait\n")
        self.assertEqual(roles["learner"]["gpus"], 4)

    def test_a_server_on_ray_has_the_gpus_of_ray(self):
        roles = self.roles(TWO_NODES + "n=($(scontrol show hostnames))\n"
                           "srun -N1 -n1 -w ${n[0]} bash -c 'ray start --head --port=5000 && vllm serve m --port 9876 --tensor-parallel-size 8' &\n"
                           "srun -N1 -n1 -w ${n[1]} ray start --block --address=${n[0]}:5000 &\npython test.py\n")
        self.assertEqual((roles["server"].get("gpus"), roles["server"]["wrapper"]), (None, ["env", "-u", "CUDA_VISIBLE_DEVICES"]))


    def test_ray_in_a_part_of_the_job_has_the_gpus_there(self):
        roles = self.roles("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=2\n#SBATCH hetjob\n#SBATCH --nodes=2\n"
                           "srun --het-group=0 bash -c 'ray start --head --port=5000 && ray job submit -- python -m openrlhf.cli.train_ppo_ray'\n")
        self.assertEqual((roles["learner"]["pool"], roles["learner"]["per_node"]), ("group-0", 2))


    def test_a_step_that_is_given_gpus_sees_those(self):
        result, _, _ = self.import_text("#SBATCH --gpus-per-node=8\nsrun --exact -n1 --gpus=1 python a.py &\nsrun --exact -n1 --gpus=1 python b.py &\nwait\n")
        self.assertNotIn("GPUs", result.stderr.partition("\n\n")[2].replace("8 GPUs and", ""), result.stderr)

    def test_one_after_the_other_beside_a_server_share_nothing(self):
        roles = self.roles("#SBATCH --gpus-per-node=8\nvllm serve m --port 8000 &\nuntil curl -sf localhost:8000/health; do sleep 5; done\n"
                           "python eval.py --task a\npython eval.py --task b\n")
        self.assertNotIn("share_gpus_with", roles["engine"])


class Steps(Import):
    def test_a_program_in_place_of_the_script(self):
        self.assertEqual(self.roles("export A=1\nexec python train.py --x\n")["learner"]["command"], ["python", "train.py", "--x"])

    def test_programs_that_hide_are_refused(self):
        for program in ("tmux new-session -d 'vllm serve m'", "screen -dmS s vllm serve m"):
            self.assertIn("starts a program in a terminal of its own, which is not imported: start it with &", self.refusal(program + "\nsleep 60\npython train.py\n"))
        self.assertIn("moves itself to the background, where nlaunch does not see it: start it in the foreground, with &",
                      self.refusal("redis-server --daemonize yes\npython train.py\n"))

    def test_an_empty_environment_keeps_its_task(self):
        learner = self.roles(TWO_NODES + "srun env -i PATH=$PATH python train.py\n")["learner"]
        self.assertEqual((learner["per_node"], learner["command"]), (1, ["python", "train.py"]))

    def test_a_step_without_variables_runs_where_it_is(self):
        _, experiment, _ = self.planned(TWO_NODES + "srun --export=NONE python train.py\n")
        self.assertEqual(experiment["workdir"], str(self.folder))

    def test_what_ssh_gets_from_the_site(self):
        _, experiment, _ = self.planned(TWO_NODES + "n=($(scontrol show hostnames))\nfor h in ${n[@]}; do ssh $h \"cd $PWD; python train.py --on $h\" & done\nwait\n",
                                        "--env", "SCRATCH=/scratch/ada")
        self.assertEqual(len(experiment["roles"]), 1)

    def test_commands_within_a_task_may_fail(self):
        (self.folder / "inner.sh").write_text("which no-such-program || true\nbash -c 'exit 3' || true\npython train.py\n")
        self.assertIn("learner", self.roles(TWO_NODES + "srun bash inner.sh\n"))

    def test_all_tasks_are_recorded_if_they_differ(self):
        roles = self.roles(Gpus.FOUR_TASKS + "srun bash -c 'python train.py --port $((29500 + SLURM_LOCALID * SLURM_LOCALID))'\n")
        self.assertEqual([role["command"][-1] for role in roles.values()], ["29500", "29501", "29504", "29509"])

    def test_one_cpu_for_each_task(self):
        _, _, profile = self.planned(TWO_NODES.replace("tasks-per-node=1", "tasks-per-node=4") + "srun python train.py\n")
        self.assertEqual(profile["scheduler"]["directives"]["cpus-per-task"], 4)

    def test_another_distribution_is_refused(self):
        for script in ("#SBATCH --distribution=cyclic\nsrun python train.py\n", "export SLURM_DISTRIBUTION=cyclic\nsrun python train.py\n"):
            with self.subTest(script):
                self.assertIn("a plan numbers its processes node by node (block)", self.refusal(TWO_NODES + script))


class OfTheCluster(Import):
    """What only the cluster knows is no value."""

    def test_the_name_of_an_interface(self):
        for command in ("ip route show default | awk '{print $5}'", "ip route get 8.8.8.8 | grep -oP 'dev \\K\\S+'", "ip -o link show up | awk -F': ' 'NR==1{print $2}'"):
            with self.subTest(command):
                self.assertIn("error: a command of the script contains 'recif0', which stands for a network interface of the cluster. Give the output of "
                              "the command with --prints 'PART OF THE COMMAND=TEXT' [import.unknown]\n",
                              self.refusal(f"export NCCL_SOCKET_IFNAME=$({command})\npython train.py\n"))
        _, _, profile = self.planned("export NCCL_SOCKET_IFNAME=$(ip route show default | awk '{print $5}')\npython train.py\n",
                                     "--prints", "ip route=default via 1.2.3.4 dev ib0")
        self.assertEqual(profile["env"]["set"]["NCCL_SOCKET_IFNAME"], "ib0")

    def test_the_address_of_an_interface_as_ip_prints_it(self):
        for command in ("ip -4 -o addr show ib0 | awk '{print $4}' | cut -d/ -f1", "ip addr show ib0 | grep 'inet ' | awk '{print $2}' | cut -d/ -f1",
                        "ifconfig ib0 | grep 'inet ' | awk '{print $2}'", "ip -br addr show ib0 | awk '{print $3}' | cut -d/ -f1",
                        "ip route get 1.1.1.1 | grep -oP 'src \\K\\S+'"):
            with self.subTest(command):
                self.assertEqual(self.roles(f"python train.py --at $({command})\n")["learner"]["command"][-1], "${self.host}")

    def test_folders_that_are_not_here(self):
        learner = self.roles("python train.py $(readlink -f /projects/x/data) $(realpath /projects/x/../y)\n")["learner"]
        self.assertEqual(learner["command"][2:], ["/projects/x/data", "/projects/y"])

    def test_where_a_program_is(self):
        self.assertIn("which stands for where the cluster has a program (`which`).",
                      self.refusal("export CUDA_HOME=$(dirname $(dirname $(which nvcc)))\npython train.py\n"))

    def test_a_decision_by_a_made_up_name(self):
        for script, name in (("case $(hostname) in nid*) X=1;; *) X=2;; esac\n", "rec-node-0"), ("[[ $(hostname) == nid* ]] && X=1 || X=2\n", "rec-node-0"),
                             ('[ "$SLURM_CLUSTER_NAME" = juwels ] && X=1 || X=2\n', "rec-cluster"),
                             ('case "$SLURM_JOB_PARTITION" in\n  gpu*) X=1;;\n  *) X=2;;\nesac\n', "rec-partition")):
            with self.subTest(script):
                self.assertIn(f"the script decides by '{name}', which is a made-up name: give that of the cluster with --",
                              self.refusal(script + "python train.py $X\n"))
        self.planned("case $(hostname) in nid*) X=1;; *) X=2;; esac\npython train.py $X\n", "--prints", "hostname=nid001")
        # Names of the job itself are known.
        self.planned(TWO_NODES + "head=$(scontrol show hostnames | head -n1)\n[ $(hostname) = login ] && exit 1\nsrun python train.py --head $head\n")

    def test_an_environment_of_conda_by_its_folder(self):
        _, experiment, _ = self.planned("conda activate ./envs/rl\npython train.py\n")
        self.assertEqual(experiment["env"]["set"]["CONDA_PREFIX"], f"{self.folder}/envs/rl")


class Codes(Import):
    """What a script does after a failure is not recorded."""

    def test_each_is_noted(self):
        for script, note in (
                ("if python a.py; then python b.py; else python c.py; fi\n",
                 "line 1: if a fails, the script starts python c.py in line 1, which is not imported: here the run stops"),
                ("python a.py || echo failed\npython b.py\n", "line 1: if a fails, the script goes on and exits with 0: here the run stops, and fails"),
                ("python a.py\nRC=$?\npython b.py\n", "line 2: the script reads an exit code, which was 0 here: what it does after a failure is not "
                                                    "imported, and the run stops"),
                ("python a.py --tag $$\n", "line 1: $$ is a process id, which differs in each job, but the plan has the number it was here"),
                ("umask 077\npython a.py\n", "line 1: umask 077: not imported")):
            with self.subTest(script):
                result, experiment, _ = self.import_text(script)
                self.assertIn(f"note: {note}\n", result.stderr)
                self.assertTrue(yaml.safe_load(experiment)["roles"])
                self.assertTrue(result.stderr.splitlines()[-1].startswith(SAME), result.stderr)


if __name__ == "__main__":
    unittest.main()
