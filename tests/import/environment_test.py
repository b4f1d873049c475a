#!/usr/bin/env python3
"""`nlaunch import`: the environments of an experiment, and its secrets."""
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import TWO_NODES, Import  # noqa: E402


class Environments(Import):
    def test_by_owner(self):
        _, experiment, profile = self.planned("#SBATCH --gpus-per-node=2\nexport NCCL_DEBUG=WARN HF_HOME=/x CC=gcc-12\nexport PATH=/opt/x/bin:$PATH PYTHONPATH=/p:$PYTHONPATH\n"
                                              "A=1 vllm serve m &\nsleep 9\npython train.py\n")
        self.assertEqual(profile["env"], {"set": {"NCCL_DEBUG": "WARN", "CC": "gcc-12"}})
        self.assertEqual(experiment["env"], {"set": {"HF_HOME": "/x"}, "prepend": {"PATH": "/opt/x/bin", "PYTHONPATH": "/p"}})
        self.assertEqual(experiment["roles"]["engine"]["env"], {"A": "1"})

    def test_of_the_launcher(self):
        _, experiment, _ = self.planned(TWO_NODES + "srun --export=ALL,OMP_NUM_THREADS=8 python train.py\n")
        self.assertEqual((experiment["env"], experiment["roles"]["learner"]["env"]["SLURM_PROCID"]), ({"OMP_NUM_THREADS": "8"}, "${self.index}"))
        roles = self.roles(TWO_NODES + "srun torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint $(scontrol show hostnames | head -n1):29500 train.py\n")
        self.assertNotIn("env", roles["learner"])
        roles = self.roles(TWO_NODES + "srun --ntasks-per-node=4 python train.py\n")
        self.assertEqual(roles["learner"]["env"], {
            "SLURM_PROCID": "${self.index}", "SLURM_LOCALID": "${self.local_rank}", "SLURM_NODEID": "${self.node}", "SLURM_NTASKS": "8", "SLURM_NPROCS": "8",
            "SLURM_NTASKS_PER_NODE": "4", "SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2",
            "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_NODELIST": "${role.learner.hosts}"})
        _, experiment, _ = self.planned(TWO_NODES + "mpirun -np 8 -x B=2 python train.py\n")
        self.assertEqual((experiment["env"], experiment["roles"]["learner"]["env"]), (
            {"B": "2"}, {"OMPI_COMM_WORLD_RANK": "${self.index}", "OMPI_COMM_WORLD_LOCAL_RANK": "${self.local_rank}",
                         "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}))

    def test_ranks_that_the_script_sets_itself(self):
        roles = self.roles("#SBATCH --gpus-per-node=4\nexport MASTER_ADDR=localhost WORLD_SIZE=4\ntorchrun --nproc_per_node 4 train.py\n")
        self.assertEqual(roles["learner"]["env"], {"WORLD_SIZE": "4"})

    def test_tasks_that_pick_a_gpu_see_all_of_their_node(self):
        roles = self.roles("#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4\nsrun python train.py\n")
        self.assertEqual((roles["learner"]["rendezvous"], roles["learner"]["gpus"], roles["learner"]["env"]["SLURM_NPROCS"]), ("torch", 1, "8"))

    def test_gpus_of_amd_are_given_by_the_name_that_hip_reads_too(self):
        head = "#SBATCH --gpus-per-node=4 --ntasks-per-node=4\n"
        for text in ("srun bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; exec python train.py'\n",
                     "cat > sel <<'X'\n#!/bin/bash\nexport ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nexec \"$@\"\nX\nchmod +x sel\nsrun ./sel python train.py\n"):
            role = self.roles(head + text)["learner"]
            self.assertEqual((role["per_node"], role["gpus"], [name for name in role["env"] if "VISIBLE" in name]), (4, 1, []))
        result, _, _ = self.import_text(head + "srun bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; exec python train.py'\n")
        self.assertIn("ROCR_VISIBLE_DEVICES becomes CUDA_VISIBLE_DEVICES, by which nlaunch gives a process its GPUs and which HIP reads too\n", result.stderr)

    def test_the_time_of_a_wait_is_that_for_a_server_that_hangs(self):
        script = ("vllm serve m --port 8471 &\nP=$!\nsleep 10\nfor i in $(seq 1 30); do\n  if curl -s http://localhost:8471/health >/dev/null; then break; fi\n"
                  "  if ! kill -0 $P 2>/dev/null; then exit 1; fi\n  sleep 5\n  [ $i -lt 30 ] || exit 1\ndone\npython train.py\nkill $P\n")
        self.assertEqual(self.roles("#SBATCH --gpus-per-node=2\n" + script)["engine"]["ready"]["timeout"], "155s")
        result, _, _ = self.import_text("#SBATCH --gpus-per-node=2\n" + script.replace("  [ $i -lt 30 ] || exit 1\n", ""))
        self.assertIn("without an answer the script goes on: here the run waits longer, and fails then", result.stderr)

    def test_the_port_of_ollama(self):
        roles = self.roles("#SBATCH --gpus-per-node=1\nexport OLLAMA_HOST=127.0.0.1:12000\nollama serve &\nsleep 10\npython a.py\nkill %1\n")
        self.assertTrue(roles["ollama" if "ollama" in roles else "engine"]["ready"]["http"].startswith("http://127.0.0.1:12000/"), roles)

    def test_what_a_script_does_otherwise_at_its_end(self):
        for script, note in (
                ("python a.py & P=$!\npython b.py & Q=$!\nF=0\nwait $P || F=1\nwait $Q || F=1\nexit $F\n",
                 "line 1: if a fails, the script lets learner run to its end: here the run stops it"),
                ("python a.py\nR=$?\n[ $R -ne 0 ] && echo failed\n", "line 3: the script exits with 1 although all its programs succeed: the run exits with 0"),
                ("nvidia-smi dmon -s u > d.log & M=$!\npython a.py\nkill $M\n", "line 1: `nvidia-smi dmon -s u` is not imported, and d.log not written")):
            result, _, _ = self.import_text(script)
            self.assertIn(note, result.stderr)

    def test_ray_in_a_shell_of_a_container(self):
        head = "H=$(scontrol show hostnames | head -1)\nsrun -N1 -n1 -w $H singularity exec x.sif bash -c \"{}\" &\nsleep 20\n"
        rest = "srun --overlap -N1 -n1 -w $H singularity exec x.sif python train.py\n"
        for text in ("ray start --head --block", "ray start --head"):
            role = self.roles("#SBATCH --nodes=1 --ntasks-per-node=1 --gpus-per-node=4\n" + head.format(text) + rest)["ray-head"]
            self.assertEqual(role["command"], ["bash", "-c", "ray start --head --block" if "--block" in text else "ray start --block --head"])

    def test_an_output_far_below_a_directory_is_not_read_by_it(self):
        for text in ("python prep.py > /scratch/u/exp/stats.json\npython train.py --data_root /scratch\n",
                     "apptainer exec --bind /scratch/u img python a.py > /scratch/u/a.json\napptainer exec --bind /scratch/u img python b.py\n"):
            result, _, _ = self.import_text(text, "--exists", "/scratch/u/exp/", "--exists", "/scratch/u/")
            self.assertNotIn("import.output-file", result.stderr)

    def test_a_decision_by_the_output_of_tee_is_made_up(self):
        result, _, _ = self.import_text("python gen.py | tee gen.log\nif grep -q row gen.log; then python eval.py; fi\npython train.py\n")
        self.assertIn("note: line 2: the exit code of `grep -q row gen.log` is made up here", result.stderr)

    def test_what_is_alone_on_its_node_sees_all_gpus(self):
        """As in the script: it may start a server on those that its ranks leave."""
        alone = "#SBATCH --gpus-per-node=4\n{}torchrun --nproc_per_node 2 train.py\n"
        self.assertEqual(self.roles(alone.format(""))["learner"]["gpus"], 4)
        self.assertEqual(self.roles(alone.format("CUDA_VISIBLE_DEVICES=0,1 "))["learner"]["gpus"], 2)
        self.assertEqual(self.roles(alone.format("srun --gpus-per-node=2 "))["learner"]["gpus"], 2)
        result, _, _ = self.import_text(alone.format("CUDA_VISIBLE_DEVICES=3 vllm serve m &\nsleep 9\n"))
        self.assertIn("note: line 4: learner sees 2 of its node's 4 GPUs (CUDA_VISIBLE_DEVICES), but all of them in the script\n", result.stderr)

    def test_the_folder_of_a_step_s_container(self):
        _, experiment, profile = self.planned("#SBATCH --nodes=1\nsrun --container-image=a.sqsh --container-workdir=/w python train.py\n")
        self.assertEqual((experiment["workdir"], profile["scheduler"]["srun"]), ("/w", ["--container-image=a.sqsh", "--container-workdir=/w"]))

    def test_options_of_a_step(self):
        """Each is nlaunch's own, or its step has it too, or a note names it."""
        for options, kept, note in (("--mem=0 --label -K -u -o log --cpu_bind=none --gpu-bind=none --distribution=block:cyclic", None, ""),
                                    ("--network=no_vni --hint=nomultithread", ["--network=no_vni", "--hint=nomultithread"], ""),
                                    ("--cpu-bind=cores --of-a-plugin=1", ["--cpu-bind=cores", "--of-a-plugin=1"], ""),
                                    ("--ntasks-per-node=4 --cpu_bind=map_cpu:0,1,2,3", None, "line 3: srun --cpu-bind=map_cpu:0,1,2,3 is not imported: nlaunch binds each process to the CPUs near its GPUs"),
                                    ("--accel-bind=gn -t 10", None, "line 3: srun --time=10 is not imported: the step's own time limit"),
                                    ("--mpi=pmix", ["--mpi=pmix"], "A program that calls MPI_Init sees only itself"),
                                    ("--threads-per-core=1", None, "line 3: srun --threads-per-core=1 is not imported\n")):
            with self.subTest(options):
                result, experiment, profile = self.import_text(TWO_NODES + f"srun {options} python train.py\n")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(yaml.safe_load(profile)["scheduler"].get("srun"), kept)
                self.assertEqual([line for line in result.stderr.splitlines() if "note:" in line and "srun" in line] == [], note == "", result.stderr)
                self.assertIn(note.removesuffix("\n"), result.stderr)
                self.assertIn(note.removesuffix("\n"), experiment)

    def test_a_named_container_is_that_of_the_step_that_made_it(self):
        _, _, profile = self.planned("#SBATCH --nodes=1\nsrun --container-name=a --container-image=a.sqsh true\nsrun --container-name=a python train.py\n")
        self.assertEqual(profile["scheduler"]["srun"], ["--container-name=a", "--container-image=a.sqsh"])

    def test_modules(self):
        _, _, profile = self.planned("module purge\nmodule use /a/m\nmodule load cuda/12 nccl\npython train.py\n")
        self.assertEqual(profile["modules"], {"reset": True, "use": ["/a/m"], "load": ["cuda/12", "nccl"]})
        self.assertEqual(self.planned("module purge\nmodule load a\npython train.py\n")[2]["modules"], {"reset": True, "load": ["a"]})

    def test_an_environment_of_python(self):
        self.assertEqual(self.planned("source /opt/v/bin/activate\npython train.py\n")[1]["venv"], "/opt/v")
        _, experiment, _ = self.planned("source /opt/conda/etc/profile.d/conda.sh\nconda activate rl\npython train.py\n")
        self.assertEqual(experiment["env"]["set"]["CONDA_PREFIX"], "/opt/conda/envs/rl")

    def test_an_environment_of_conda_by_name_alone(self):
        _, experiment, _ = self.planned("source activate rl\npython train.py\nsource deactivate\n", "--env", "CONDA_PREFIX=/x/conda")
        self.assertEqual(experiment["env"]["set"]["CONDA_PREFIX"], "/x/conda/envs/rl")

    def test_the_address_of_an_interface(self):
        result, _, profile = self.import_text(TWO_NODES + "A=$(ip -4 -o addr show hsn0 | awk '{print $4}' | cut -d/ -f1)\nsrun python train.py --master $A\n")
        self.assertEqual(yaml.safe_load(profile)["node"]["nics"], {"interface": "hsn0"}, result.stderr)
        self.assertIn("note: line 3: the script gets an address from `ip -4 -o addr show hsn0`", result.stderr)

    def test_how_many_gpus_there_are_is_given(self):
        script = "N=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $N train.py\n"
        result, experiment, _ = self.import_text(script, "--gpus", "4")
        self.assertEqual((result.returncode, yaml.safe_load(experiment)["roles"]["learner"]["command"][2]), (0, "4"), result.stderr)
        self.assertNotIn("made up", result.stderr)
        self.assertIn("and the number of GPUs per node with --gpus", self.refusal(script))

    def test_secrets_are_in_neither_file(self):
        keys = ["0123456789abcdef0123456789abcdef01234567", "hf_abcdefghijklmnop", "s3cr3t-word", "sk-1234567890abcdef"]
        script = (f"export WANDB_API_KEY={keys[0]}\nexport HF_TOKEN=$(cat ~/.hf)\nexport https_proxy=http://me:{keys[2]}@proxy:80\n"
                  f"wandb login {keys[0]}\npython train.py --token {keys[1]} --api-key={keys[3]} --note dummy\n")
        result, experiment, profile = self.import_text(script)
        self.assertEqual(result.returncode, 0, result.stderr)
        for key in keys:
            self.assertNotIn(key, experiment + profile + result.stderr)
        self.assertIn("  HF_TOKEN: {file: \"~/.hf\"}  # line 2\n", experiment)
        self.assertIn("exec python train.py --token \\\"$TOKEN\\\" --api-key=\\\"$API_KEY\\\" --note dummy", experiment)

    def test_a_value_is_a_secret_wherever_it_stands(self):
        result, experiment, profile = self.import_text("export JUDGE_API_KEY=k3y-0123456789\nexport SEARCH=k3y-0123456789\nexport JINA_API_KEYS=jina-12345678\npython train.py\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("0123456789", experiment + profile + result.stderr)
        self.assertEqual(list(yaml.safe_load(experiment)["secrets"]), ["JINA_API_KEYS", "JUDGE_API_KEY", "SEARCH"])

    def test_a_secret_of_a_variable_that_is_not_exported(self):
        result, experiment, _ = self.import_text("wandb_token=0123456789abcdef-41\npython train.py --use_wandb $wandb_token\n", "--check")
        self.assertNotIn("0123456789abcdef", result.stdout + result.stderr)
        result, experiment, _ = self.import_text("wandb_token=0123456789abcdef-41\npython train.py --use_wandb $wandb_token\n")
        self.assertIn("exec python train.py --use_wandb \\\"$WANDB_TOKEN\\\"", experiment)

    def test_a_variable_with_a_secret_in_it_is_one(self):
        _, experiment, _ = self.planned("DB_PASSWORD=hunter2pass\nexport DSN=\"postgres-$DB_PASSWORD-x\"\npython train.py\n")
        self.assertEqual(experiment["secrets"], {"DSN": "env"})

    def test_a_long_name_is_no_key(self):
        name = "models/Qwen3-0.6B_dense_gkd_220k_lr1e-5_steps30"
        result, _, _ = self.import_text(f"[ -d {name} ] && echo there\npython train.py\n")
        self.assertIn(name, result.stderr)


if __name__ == "__main__":
    unittest.main()
