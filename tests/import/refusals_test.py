#!/usr/bin/env python3
"""`nlaunch import`: which scripts it refuses, and what it notes of those that it takes."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import TWO_NODES, Import  # noqa: E402


class Refusals(Import):
    """A plan of another job is worse than none."""

    def test_what_no_plan_can_say(self):
        for script, said in (
                ("#SBATCH --nodes=1\n#SBATCH hetjob\n#SBATCH --nodes=2\nsrun --het-group=2 python train.py\n", "line 4: this step cannot be imported."),
                (TWO_NODES + "srun -n1 -w rec-node-7 python train.py\n", "line 3: this step cannot be imported."),
                (TWO_NODES + "srun -n1 a : -n1 b\n", "line 3: this step cannot be imported. It starts several programs"),
                ("python train.py --n $(python count.py)\n", "line 1 reads the output of `python count.py`, which is not known because it did not run."),
                ("python train.py --n $(cat /no/such)\n", "line 1 reads /no/such, which is not on this machine."),
                ("python data.py | python train.py\n", "learner: its standard input is not known here, and a role has none"),
                ("#SBATCH --nodes=2\nsrun -n2 python train.py <<< conf\n", "its standard input is not known here"),
                ("#SBATCH --nodes=2\nsrun -n2 bash -c 'python train.py' <<< conf\n", "its standard input is not known here"),
                ("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=0 vllm serve m --port 8000 &\nsleep 60\npkill -f 'vllm serve'\ntorchrun --nproc_per_node 3 train.py\n",
                 "engine: the script stops it, or waits for it to exit, before it starts torchrun at line 5"),
                ("source env.sh\npython train.py\n", "env.sh, which is not on this machine."),
                ("#SBATCH --array=0-3\npython train.py $SLURM_ARRAY_TASK_ID\n", "the job is an array of 4 tasks, but an experiment is only one of them"),
                ("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=0,1 vllm serve m --tensor-parallel-size 2 &\nsleep 9\nCUDA_VISIBLE_DEVICES=1,2 torchrun --nproc_per_node 2 train.py\n",
                 "it uses some of the GPUs of learner (CUDA_VISIBLE_DEVICES) and others as well"),
                ("module unload a\npython train.py\n", "`module unload a`: a profile can only load modules."),
                ("srun bash -c 'python train.py; exit 3'\n", "the tasks of the step at line 1 exit with 3"),
                ("srun bash -c 'python \"train.py'\n", "bash says of the text after -c: line 1: unexpected EOF while looking for matching `\"'"),
                (TWO_NODES + "srun --container-image= python train.py\n", "line 3: srun --container-image=: there is no value after the =."),
                ("#SBATCH --ntasks-per-node=your_own\npython train.py\n", "line 1: --ntasks-per-node=your_own has no number: write the number"),
                (TWO_NODES + "srun --ntasks-per-node=$N python train.py\n", "line 3: srun --ntasks-per-node= has no number."),
                (TWO_NODES + "srun --task-prolog=a.sh python train.py\n", "line 3: srun --task-prolog=a.sh: Slurm runs it before each task, but nlaunch does not"),
                (TWO_NODES + "srun -m cyclic python train.py\n", "line 3: srun --distribution=cyclic: a plan numbers its processes node by node (block)"),
                (TWO_NODES + "srun --container-image=a python a.py\nsrun --container-image=b python train.py\n",
                 "line 4: learner runs in --container-image=b, but a in --container-image=a: nlaunch's step has one image for all roles."),
                (TWO_NODES + "python a.py\nsrun --container-image=b python train.py\n", "line 4: learner runs in --container-image=b, but a in no container"),
                ("L=$(nvidia-smi topo -m | grep -c NV)\nexport NCCL_NVLS_ENABLE=$((L > 0))\npython train.py\n",
                 "line 3: 'NCCL_NVLS_ENABLE=0' depends on what `nvidia-smi topo -m` (line 1) says about the machine, which is made up."),
                ("[ $(nvidia-smi --query-gpu=memory.total --format=csv,noheader | head -n1) -gt 50000 ] && python more.py\npython train.py\n", "line 1: 'python more.py' depends on what"),
                ("A=/a/<team>/b\npython train.py\n", "line 1 has a placeholder, <team>, which bash treats as a redirection"),
                ("python train.py > logs/a\npython b.py\n", "line 1 writes to logs/a, but logs/ does not exist: bash does not start the program, here or on the cluster."),
                ("sbatch other.sh\n", "it submits a job at line 1. Import what it submits"),
                ("ray stop\nbash -c ''\n", "the script does not start a program that could be a role"),
                ("'' a\n", "the program name is empty"),
                ("#SBATCH --nodes=4 --gpus-per-node=4\nsrun -N2 -n2 torchrun --nnodes 2 a.py &\nsrun -N2 -n2 torchrun --nnodes 2 b.py &\nwait\n",
                 "it runs at the same time as torchrun (line 2), and not both name their nodes: Slurm gives a step nodes that no other one holds."),
                (TWO_NODES + 'n=($(scontrol show hostnames))\nsrun -w "${n[@]}" python train.py\n', "line 4: srun starts 'rec-node-1', the name of a node"),
                ("accelerate launch --config_file <(echo n: 8) train.py\n", "line 1: `accelerate launch --config_file /dev/fd/63 train.py` reads or writes /dev/fd/63"),
                ("seq 0 3 | xargs -P 4 -I{} python gen.py --shard {}\npython train.py\n", "line 1: xargs starts several programs at once (-P)"),
                ("#SBATCH --nodes=2\n#SBATCH --ntasks=5\nsrun python train.py\n",
                 "line 2: --ntasks=5 on 2 nodes: Slurm gives some nodes more tasks than others, which no role can say. Give --ntasks-per-node [import.not-said]"),
                ("#SBATCH --gpus-per-node=4\nfor s in 1 2 3 4 5; do srun --exact -n1 --gpus=1 python train.py --seed $s & done; wait\n",
                 "Slurm starts this step when steps before it have freed their GPUs; a plan starts all of a stage at once."),
                ("vllm serve m --port 8001 &\nsleep 60\npython a.py\nkill -9 $(nvidia-smi --query-compute-apps=pid --format=csv)\nvllm serve n --port 8001 &\nsleep 60\npython b.py\n",
                 "stops what runs then, such as engine, before engine-2 in line 5 starts: in the plan they would run at the same time. Split the script there"),
                ("vllm serve m --port 8001 &\nsleep 60\npython a.py\nkill %1\npython b.py\n", "line 4: `kill %1` stops what runs then, such as engine"),
                ("if ! curl -sf http://127.0.0.1:8114/; then\n  python -m my.sam_server --port 8114 &\n  sleep 30\nfi\npython eval.py --url http://127.0.0.1:8114\n",
                 "line 1: the script asks `curl -sf http://127.0.0.1:8114/` once, and if nobody answers, it starts python my.sam_server (line 2): a plan cannot do one or the other."),
                ("curl -sf localhost:8114/health || { echo start it first; exit 3; }\npython eval.py\n",
                 "line 1: the script asks `curl -sf localhost:8114/health` once, and if nobody answers, it does not start python eval.py (line 2)"),
                ("python a.py &\necho $! | xargs kill\npython train.py\n", "` ends a process by its id, which is another one in each run: use the shell's own kill, kill $PID"),
                ("mpirun -np 4 --gugus hf python train.py\n", "line 1: import does not know the option --gugus of mpirun: the next word may be its value or the program."),
                (TWO_NODES + "mpirun -np 4 --map-by node python train.py\n", "line 3: this mpirun numbers its processes round the nodes (node, --bynode), but a plan node by node"),
                (TWO_NODES + "printf '%s slots=3\\n%s slots=1\\n' $(scontrol show hostnames) > hf\nmpirun -np 4 --hostfile hf python train.py\n",
                 "line 4: the hosts in hf do not get the processes that the job's nodes get in a plan: name them with -H host:N,host:N"),
                ("mpirun --map-by ppr:1:socket python train.py\n", "line 1: how many processes mpirun --map-by ppr:1:socket puts on a node is not known here"),
                ("mpirun --hostfile hf -np 4 python train.py\n", "line 1: mpirun places processes by the hosts in hf, which are not known here: name them with -H HOST:N,HOST:N"),
                (TWO_NODES + "srun --quotatype spot python train.py\n", "line 3: srun itself does not know --quotatype: is `spot` its value, or the program? Write --quotatype=spot"),
                ("#SBATCH -o log-%j.out\npython train.py\ngzip log-$SLURM_JOB_ID.out\n", "line 3: `gzip` uses the output of the job itself (#SBATCH --output), which is in the logs of the roles"),
                ("#SBATCH --ntasks-per-node=2\nsrun bash -c '\nif [ $SLURM_PROCID = 0 ]; then python a.py; touch ok; fi\nwhile [ ! -f ok ]; do sleep 1; done\npython train.py'\n",
                 "a task of a step waits for the file ok, which no role can do: let its program wait"),
                ("ray start --head\npython a.py\nray stop\nray start --head\npython b.py\n", "line 3: `ray stop` stops what runs then, such as ray-head, before ray-head-2"),
                ("ray start --head\nray job submit --no-wait -- python a.py\n", "returns when the job is submitted, and the run would end with it: leave --no-wait out [import.detaches]"),
                ("apptainer instance start a.sif w\napptainer exec instance://w python a.py\n", "moves itself to the background"),
                ("while [ ! -f out/done ]; do python train.py --resume; done\npython eval.py\n",
                 "line 1: the script starts `python train.py --resume` again and again until a file is there, which no role does [import.loop]"),
                ("shopt -s nullglob\nfor f in queue/*.yaml; do python train.py $f; done\npython report.py\n",
                 "line 2: with nullglob, a pattern stands for the files on the cluster, and for nothing here: name the files [import.files]"),
                ("for c in ckpts/step_*; do\n  python eval.py $c\ndone\n",
                 "line 2: the script starts `python eval.py 'ckpts/step_*'` once for each file that ckpts/step_* stands for, and which those are only the cluster knows: name them [import.files]"),
                ("python trainer.py --port 18080 & T=$!\nuntil curl -sf localhost:18080/health; do sleep 1; done\nvllm serve m & S=$!\nwait $T\nkill $S\n",
                 "line 2: the script waits for an answer of learner (line 1), which a plan starts after that wait, for the run ends with it [import.wait]"),
                ("G=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | head -1)\npython a.py --gpu $G\n", "depends on what `nvidia-smi --query-gpu=uuid --format=csv,noheader` (line 1) says"),
                ("files=(data/*.jsonl)\nfor f in \"${files[@]}\"; do python a.py $f; done\n", "once for each file that data/*.jsonl stands for"),
                ("set -- data/*.jsonl\nfor f in \"$@\"; do python a.py $f; done\n", "once for each file that data/*.jsonl stands for"),
                ("find data -name '*.jsonl' | while read f; do python a.py $f; done\npython b.py\n", "data, which is not on this machine"),
                ("srun bash -c 'for f in /data/*.tar; do python prep.py $f; done'\n", "once for each file that /data/*.tar stands for"),
                ("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=MIG-12-ab python a.py\n", "sees MIG-12-ab by its UUID (CUDA_VISIBLE_DEVICES), which is of one node: give its number [import.visible]"),
                ("#SBATCH --gpus-per-node=4 --ntasks-per-node=4\nexport ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\nsrun python train.py\n",
                 "the script sets ROCR_VISIBLE_DEVICES=0 for all tasks of learner, and Slurm may set it again for each"),
                ("one() { python eval.py $1; }\nexport -f one\napptainer exec i.sif bash -c 'one a'\n", "calls one, a function of the script (export -f): put it into a file of its own [import.function]"),
                ("export HF_TOKEN=your-token-here WANDB_API_KEY=your-token-here\npython a.py --hub_token $HF_TOKEN --key $WANDB_API_KEY\n",
                 "line 2: HF_TOKEN and WANDB_API_KEY have the same value, and which of them learner is given is not known: give each its own [import.secret]"),
                ("mkdir -p data\npython gen.py > data/a.jsonl\npython train.py --data data\n", "data/a.jsonl, which contains the redirected output of another program"),
                ("for lr in 1 2; do\n  mkdir -p out/$lr\n  python eval.py --ckpt $lr > out/$lr/score.json\ndone\npython summarize.py out\n",
                 "line 5: a program uses"),
                ("srun bash -c 'if [ \"$(hostname -s)\" = gpu3 ]; then python t.py --big; else python t.py --small; fi'\n",
                 "line 1: the script decides by 'rec-node-0', which is a made-up name"),
                ("if [[ ${HOSTNAME%%-*} == jwb* ]]; then python b.py --jwb; else python b.py; fi\n", "which is a made-up name"),
                ("[ \"$(hostname)\" = node-local01 ] && A=1\npython b.py ${A-}\n", "which is a made-up name"),
                ("A=$(echo a 10.1.1.1 | awk '/a/ {print no_such_function($2)}')\npython train.py --addr $A --port 1\n",
                 "fails with the awk of this machine, so what it would print is missing"),
                ("for i in a b; do prog $i & done\nwhile pgrep -x prog >/dev/null; do sleep 1; done; prog z\n", "waits at line 2"),
                ("export CFG=$PWD/cfg.json\npython make.py > $CFG\npython train.py\n", "cfg.json, which contains the redirected output of another program"),
                ("export NVCC=$(which nvcc)\npython train.py\n", "contains '/rec/own/nvcc', which stands for where the cluster has a program (`which`)."),
                ("python train.py &\nT=$!\nwhile kill -0 $T 2>/dev/null; do python eval.py; sleep 60; done\nwait $T\n",
                 "line 3: the script starts `python eval.py` again and again while another program runs, which no role does [import.loop]"),
                ("python rm.py > rm.log 2>&1 &\ntail -f rm.log | grep -m1 ready\npython train.py\n",
                 "after it, the script waits for a line of its output (line 2) in a way that import does not recognise: use until grep -q LINE FILE, or wait for its port (nc, curl)"),
                ("#SBATCH --gpus-per-node=4\npython -m sglang.launch_server --model m --tp 2 --base-gpu-id 2 --port 30000 &\nuntil curl -sf localhost:30000/health; do sleep 5; done\n"
                 "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py\n",
                 "line 2: `--base-gpu-id 2` is a GPU by its number on the node, but engine sees only its own 2 GPUs, numbered from 0: choose them with CUDA_VISIBLE_DEVICES in the script, and leave this out [import.visible]"),
                ("f() { python eval.py $1; }\nexport -f f\nseq 0 3 | xargs -P 2 -I{} bash -c 'f {}'\n", "xargs starts several programs at once (-P)"),
                ("parallel -j 2 srun -N1 python train.py --lr {} ::: 1e-4 1e-5\n", "line 1: parallel starts several programs at once, which are not recorded"),
                ("python a.py & A=$!\npython b.py & B=$!\nwhile kill -0 $A 2>/dev/null && kill -0 $B 2>/dev/null; do sleep 5; done\nkill $A $B\nwait\npython c.py\n",
                 "line 3: the script waits for the first of several programs to exit, and a plan waits for all of a stage [import.wait]"),
                ("python a.py & A=$!\npython b.py & B=$!\nwhile kill -0 $A >/dev/null 2>&1 && kill -0 $B &>/dev/null; do sleep 5; done\npython c.py\n",
                 "line 3: the script waits for the first of several programs to exit"),
                ("python a.py & A=$!\nwhile [ -d /proc/$A ]; do sleep 5; done\npython c.py\n", "line 2: the script waits for a process by /proc, which is not recorded: use wait, or kill -0"),
                ("#SBATCH --gpus-per-node=4\nvllm serve m --port 8000 &\nuntil python -c 'import socket; socket.create_connection((\"localhost\", 8000))'; do sleep 1; done\npython eval.py\n",
                 "while another program runs: a plan would try once. Wait with curl or nc, which import knows [import.poll]"),
                ("#SBATCH --gpus-per-node=4\nvllm serve m --port 8000 &\nfor i in 1 2 3; do\n  if python probe.py; then break; fi\n  sleep 1\ndone\npython eval.py\n",
                 "line 4: the script repeats `python probe.py` until it succeeds, while another program runs"),
                (TWO_NODES + "for h in $(scontrol show hostnames); do\n  srun -N1 -n1 -w $h torchrun --nnodes=2 train.py &\ndone\nwait $!\nsrun python upload.py\n",
                 "line 7: before upload, the script waits for 1 of the 2 programs of line 4, and a plan waits for all of a role or for none: use `wait` without a process id [import.wait]"),
                ("exec -a trainer python train.py\n", "line 1: `exec -a` starts python under another name, trainer, which no role does [import.name]"),
                ("echo hello\n", "the script does not start a program that could be a role")):
            with self.subTest(script):
                self.assertIn(said, self.refusal(script))

    def test_what_is_made_of_files_that_only_exist(self):
        """Their contents are not known: a plan would write empty files over the real ones."""
        (self.folder / "here.txt").write_text("a\n")
        for script, path in (("cat /data/a /data/b > /data/ab\npython train.py --data /data/ab\n", "/data/a"),
                             ("cat /data/a | sort > /data/c\npython train.py --data /data/c\n", "/data/a"),
                             ("sort -u -o /data/s /data/a\npython train.py --data /data/s\n", "/data/a"),
                             ("sed 's/x/y/' /data/a > /data/run.yaml\npython train.py --config /data/run.yaml\n", "/data/a"),
                             ("sed -i 's/a/b/' /data/a\npython train.py --config /data/a\n", "/data/a"),
                             ("split -n l/8 -d /data/a /data/shards/s_\npython train.py --data /data/shards\n", "/data/a"),
                             ("srun bash -c 'cat /data/a /data/b > /data/ab'\npython train.py --data /data/ab\n", "/data/a"),
                             ("N=$(ls /data/shards | wc -l)\npython train.py --n $N\n", "/data/shards"),
                             ("find /data/shards/ -name '*.pt' | while read f; do python tok.py $f; done\npython train.py\n", "/data/shards"),
                             ("S=$(stat -c %s /data/a)\npython train.py --size $S\n", "/data/a")):
            with self.subTest(script):
                said = self.refusal(script, "--exists", "/data/a", "--exists", "/data/b", "--exists", "/data/shards/")
                self.assertIn(f"line 1 reads {path}, which is known to exist, but not its contents.", said)
        for makes in ("cp /data/a conf.yaml\necho 'x: 1' >> conf.yaml\n", "cat /data/a | tee conf.yaml\n"):
            made = self.refusal(makes + "python train.py --config conf.yaml\n", "--exists", "/data/a")
            self.assertIn("conf.yaml, which is known to exist, but not its contents.", made)
        self.assertIn("line 1 reads /data/none, which is not on this machine.", self.refusal("cat /data/none > here.out\npython train.py here.out\n"))
        self.assertEqual(self.roles("[ -s /data/a ] || python make.py\nls /data/shards\ncat here.txt > copy.txt\npython train.py copy.txt\n", "--exists", "/data/a", "--exists", "/data/shards/")
                         ["learner"]["command"], ["python", "train.py", "copy.txt"])

    def test_scripts_that_do_not_come_to_their_end(self):
        for script, said in (("python a.py\nset -u\npython b.py $DATA\n", "line 3: DATA: unbound variable"),
                             ("echo usage: job MODEL\nexit 2\n", "  usage: job MODEL\n"),
                             ("if then\npython a.py\n", "bash cannot parse the script:\n"),
                             ("[ -d /data/x ] || exit 1\npython a.py\n", "Not found here:\n  line 1: /data/x was reported as missing; if it exists on the cluster, use --exists /data/x"),
                             ("X=$(python a.py)\n[ -n \"$X\" ] || exit 1\npython b.py\n", "  line 1: `python a.py` did not run, so the script read no output: set the output with --prints"),
                             ("X=$(grep a config.yaml)\n[ -n \"$X\" ] || exit 1\npython b.py\n", "config.yaml is not on this machine: import where it exists, or set the output of the command with --prints"),
                             ("A=$(hostname -I | grep ^192)\n[ -n \"$A\" ] || exit 1\npython b.py\n", "  line 1: `hostname -I` got a name or an address of the simulated job"),
                             ("command -v mooncake >/dev/null || exit 1\npython b.py\n", "line 1: the script looks for the program mooncake; if the cluster has it, use --exists /usr/bin/mooncake"),
                             ("A=<team>\npython b.py\n", "Line 1 has a placeholder, <team>: replace it with its value."),
                             ("python a.py &\nwhile true; do sleep 1; done\npython b.py\n", "The script waits at line 2 for something that does not happen here.")):
            with self.subTest(script):
                self.assertIn(said, self.refusal(script))

    def test_what_is_missing_may_be_given(self):
        for script, options in (("python train.py --n $(python count.py)\n", ["--prints", "count.py=8"]), ("python train.py --n $(cat /no/such)\n", ["--prints", "/no/such=8"]),
                                ("python train.py --n $(free -g | awk '/Mem/{print $2}')\n", ["--prints", "free -g=Mem: 8"]),
                                ("nvidia-smi | tee log\npython train.py --n 8\n", []),
                                ("[ -d /data/x ] || exit 1\npython train.py --n 8\n", ["--exists", "/data/x/"]), ("set -u\npython train.py --n $N\n", ["--env", "N=8"]),
                                ("#SBATCH --array=0-9\npython train.py --n $SLURM_ARRAY_TASK_ID\n", ["--env", "SLURM_ARRAY_TASK_ID=8"])):
            with self.subTest(script):
                self.assertEqual(self.roles(script, *options)["learner"]["command"], ["python", "train.py", "--n", "8"])

    def test_what_may_be_another_job_is_said(self):
        for script, note in (("python train.py $DATA\n", "note: line 1: nothing sets $DATA, so it was empty: set it with --env DATA=VALUE\n"),
                             ("[ -f /no/such ] && python more.py\npython train.py\n", "note: line 1: /no/such is not on this machine, and the script checks whether it exists"),
                             ("python train.py --run $(date +%s)\n", "note: line 1: the output that `date +%s` gave the script is made up, or true only of this machine now."),
                             ("python a.py || python b.py\npython train.py\n", "note: line 1: if a fails, the script starts python b.py in line 1, which is not imported: here the run stops\n"),
                             ("mkdir -p out\npython train.py\n", "note: line 1: `mkdir -p out` is not imported: if a program needs it, do it before the run\n"),
                             (": | xargs -r weka fetch\npython train.py\n", "note: line 1: xargs read nothing here, so it did not start `weka fetch`. On the cluster it may\n"),
                             ("#SBATCH --ntasks-per-node=8\npython train.py\n", "note: line 1: --ntasks-per-node=8: no step of the script has that many tasks, and nlaunch's job has one per node."),
                             ("echo 'python train.py @DATA' | tr @ '$' > in.sh\nsource ./in.sh\n", "note: in.sh:1: nothing sets $DATA, so it was empty: set it with --env DATA=VALUE\n"),
                             ("python train.py --model $1\n", "note: line 1: the script reads its argument $1, which was not given: pass its arguments after --\n"),
                             ("for i in 1 2; do\npython train.py && break\ndone\n", "note: line 2: the script starts learner again if it fails: here the run then stops"),
                             ("P=$((20000 + SLURM_JOB_ID % 1000))\npython train.py --port $P\n", "note: line 1: this value is computed from the job's id: here it is a fixed number"),
                             ("retry() {\n  until \"$@\"; do\n    sleep 5\n  done\n}\nretry python train.py\n", "note: line 2: the script starts learner again if it fails: here the run then stops"),
                             ("#SBATCH --gpus-per-node=4\nexport CUDA_VISIBLE_DEVICES=3,2,1,0\ntorchrun --nproc_per_node=4 train.py\n",
                              "note: line 3: learner sees its GPUs in the order 3,2,1,0 in the script, and in ascending order here\n"),
                             ("exec 9> lock\nflock 9\npython train.py\n", "note: line 2: the run takes no lock (flock): jobs that the lock keeps apart may run at the same time\n"),
                             ("python train.py & P=$!\n(sleep 3000; kill -USR1 $P) &\nwait $P\n", "note: line 2: the script sends a signal (kill -USR1) after a time (sleep 3000): the run sends none\n"),
                             (TWO_NODES + "export MASTER_ADDR=$(scontrol show hostnames | head -n1)i\nsrun torchrun --nnodes 2 train.py\n",
                              "note: line 4: MASTER_ADDR is the name of a host with i behind it, a name on another network at some sites: the plan has the address of `node.nics.interface` in the profile, else that of the hostname\n"),
                             ("S=$(head -c 4 /dev/urandom | od -An -tu4 | tr -d ' ')\npython train.py --seed $S\n", "note: line 1: a random number differs in each job, but the plan has the one it was here\n"),
                             ("[[ ${SLURM_RESTART_COUNT:-0} -gt 0 ]] && R=--resume\npython train.py $R\n",
                              "note: line 1: the script asks whether its job was requeued, which it was not here: what it does then is not imported\n"),
                             ("python a.py\nset -e\npython train.py\n", "note: line 1: if a fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             (TWO_NODES + "A=$(getent hosts $(hostname)-hsn0 | awk '{print $1}')\nsrun python train.py --addr $A\n",
                              "note: line 3: the script gets an address from `getent hosts rec-node-0-hsn0`: the plan uses the address of `node.nics.interface` in the profile, else that of the hostname\n"),
                             ("mpirun -np 2 python train.py\n", "note: line 1: the processes of learner are not MPI ranks: a program that calls MPI_Init sees only itself\n"),
                             ("srun --export=NONE,PATH=$PATH python train.py\n", "note: line 1: srun --export gives learner no other variables: here it also gets those of the shell that calls nlaunch\n"),
                             ("python train.py --job $SLURM_JOB_ID\n", "note: line 1: learner is given ${run.id} in place of the job's id: Slurm does not know that id\n"),
                             ("python a.py\ntouch between\npython train.py\n", "note: line 2: `touch between` is not imported: if the next program needs it, make it a `task`\n"),
                             ("sleep 300\npython train.py\n", "note: line 1: `sleep 300` is not imported: the next program starts at once\n"),
                             ("python train.py\ntest -f out/model && python push.py\n", "note: line 2: "),
                             (TWO_NODES + "export MASTER_ADDR=$(scontrol show hostnames | head -n1) MASTER_PORT=29500\nsrun --overlap -N1 -n1 -w $MASTER_ADDR python store.py &\nsleep 5\nsrun --overlap --ntasks-per-node=4 python train.py\n",
                              "note: line 4: MASTER_PORT is 29500 for store, but chosen by nlaunch for learner: they do not meet there\n"),
                             ("python train.py --out out\nLAST=$(find out -name 'step_*' | sort | tail -1)\npython export.py ${LAST:-out/final}\n",
                              "note: line 2: the output that `find out -name 'step_*'` gave the script is made up, or true only of this machine now."),
                             ("#SBATCH --time=1\nset -e\nsrun python train.py\necho done\nsrun python b.py | tee log\n",
                              "note: line 5: if b fails, the script exits with 0: here the run fails\n"),
                             ("#SBATCH --time=1\nset -e\npython train.py &\nwait\n",
                              "note: line 3: if learner fails, the script exits with 0: here the run fails\n"),
                             ("set -e\nfor i in 1 2; do\n  python peek.py || continue\n  python train.py\ndone\n",
                              "note: line 3: if peek or peek-2 fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             (TWO_NODES + "for h in $(scontrol show hostnames); do\n  srun -N1 -n1 -w $h torchrun --nnodes=2 train.py &\ndone\nwait $!\n",
                              "note: line 4: the script ends when 1 of its 2 programs of this line have exited, and the run when all have\n"),
                             (TWO_NODES + "for h in $(scontrol show hostnames); do\n  srun -N1 -n1 -w $h torchrun --nnodes=2 train.py &\ndone\nwait -n\nkill $(jobs -p) || true\n",
                              "note: line 6: the script goes on when the first of the 2 programs of line 4 has exited: the run waits for all, and stops at the first that fails\n"),
                             ("#SBATCH --nodes=1\n#SBATCH --mem=0\npython train.py $SLURM_MEM_PER_NODE\n",
                              "note: line 3: nothing sets $SLURM_MEM_PER_NODE, so it was empty: set it with --env SLURM_MEM_PER_NODE=VALUE\n"),
                             ("set -e\npython gen.py && python train.py\npython eval.py\n", "note: line 2: if gen fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             ("set -e\nbash -c 'python gen.py; python train.py'\npython eval.py\n", "note: line 2: if gen fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             ("set -e\npython gen.py &\npython eval.py &\nwait\npython train.py\n",
                              "note: line 2: if gen or eval fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             ("python train.py || exit 42\n", "note: line 1: if learner fails, the script exits with 42: here the run exits with the code of learner\n"),
                             ("nohup python train.py > log 2>&1 &\ndisown\necho started\n", "note: line 1: the script exits without waiting for learner: here the run goes on until it has exited\n"),
                             ("#SBATCH --time=1\npython train.py &\n", "note: line 2: the script exits without waiting for learner, which Slurm then ends: here the run goes on until it has exited\n"),
                             ("vllm serve m & python train.py & wait\n",
                              "note: line 1: this `wait` also waits for engine, which never exits by itself: the script goes on, and the run ends when its learners have exited\n"),
                             ("python gen.py 2> err.txt\ngrep -q Error err.txt && exit 1\npython train.py\n",
                              "note: line 2: the exit code of `grep -q Error err.txt` is made up here: what the script does after another one is not imported\n"),
                             ("python gen.py > gen.txt\n[ -s gen.txt ] && python eval.py\npython train.py\n", "note: line 2: the exit code of `'[' -s gen.txt ']'` is made up here"),
                             ("python train.py\nls ckpt/*.pt > /dev/null 2>&1 && python eval.py\n", "note: line 2: the exit code of `ls 'ckpt/*.pt'` is made up here"),
                             ("hostname | grep -q gpu && X=a\npython train.py $X\n", "note: line 1: the exit code of `hostname | grep -q gpu` is made up here"),
                             ("N=$(scontrol show job $SLURM_JOB_ID | wc -l)\npython train.py $N\n", "note: line 1: the output that `scontrol show job 424242` gave the script is made up"),
                             ("python train.py --data ${TMPDIR:-/data}\n", "note: line 1: the script reads $TMPDIR, which a cluster may set: here it was /tmp. If it is another one there, pass --env TMPDIR=VALUE\n"),
                             ("unset FOO_DEBUG\npython train.py\n", "note: line 1: the script removes FOO_DEBUG, which was not set here: if the shell that calls nlaunch has it, add `unset: [FOO_DEBUG]` to `env`\n"),
                             ("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=1,2 python train.py\n", "note: line 2: the script names the GPUs 1, 2 of a node: the plan uses 2 GPUs, from the first on\n"),
                             ("#SBATCH --gpus-per-node=2\nfor i in 1 0; do CUDA_VISIBLE_DEVICES=$i python t.py --seed $i & done\nwait\n", "has GPU 1 of its node in the script, and what starts after it GPU 0"),
                             ("#SBATCH --ntasks-per-node=2\nsrun python -m spinifel --mode=mpi\n", "note: line 2: the processes of learner are not MPI ranks"),
                             (TWO_NODES + "srun --wait=60 python train.py\n", "note: line 3: srun --wait=60 ends the other tasks 60 s after the first has exited: a run waits for all, and stops at the first that fails\n"),
                             ("vllm serve m & P=$!\nfor i in $(seq 30); do curl -sf localhost:8000/health && break; sleep 10; done\npython train.py\nkill $P\n",
                              "note: line 2: after 290 s without an answer the script goes on: here the run waits longer, and fails then\n"),
                             ("printf '#!/bin/bash\\npython a.py\\n[ 1 = 2 ] || exit 3\\npython b.py\\n' > in.sh\nbash in.sh\npython train.py\n", "note: in.sh exited with 3 before its end: what follows there is not imported\n"),
                             ("ray start --head --port=6379\n",
                              "note: line 1: the script ends when Ray has started, and leaves it running: here the run goes on until it is stopped\n"),
                             ("python train.py &\nsleep 3600\n", "note: line 2: the script ends after `sleep 3600`, whatever learner does: the run ends with learner\n"),
                             ("python train.py &\npy-spy dump --pid $!\nwait\n",
                              "note: line 2: $! is a process id, which differs in each job, but the plan has the number it was here\n"),
                             ("git diff --quiet f.py || python more.py\npython train.py\n",
                              "note: line 1: the exit code of `git diff --quiet f.py` is made up here: what the script does after another one is not imported\n"),
                             ("N=$(ls ckpt | wc -l)\npython train.py --n $N\n", "note: line 1: the output that `ls ckpt` gave the script is made up"),
                             ("python train.py --seed $(( SEED + 1 ))\n", "note: line 1: nothing sets $SEED, so it was empty: set it with --env SEED=VALUE\n"),
                             ("apptainer exec a.sif python a.py\napptainer exec a.sif python b.py\necho ok\n",
                              "note: line 1: if a fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             ("python a.py 0 &\npython a.py 1 &\nwait\n", "note: line 1: if learner fails, the script lets learner-2 run to its end: here the run stops it\n"),
                             ("for g in 0 1; do python a.py $g & p[$g]=$!; done\nfor q in ${p[@]}; do wait $q || exit 5; done\n",
                              "note: line 1: if learner fails, the script exits with 5: here the run exits with the code of learner\n"),
                             ("python sft.py > sft.log\ntail -1 sft.log | grep -q done && python dpo.py\n",
                              "note: line 2: the exit code of `grep -q done` is made up here: what the script does after another one is not imported\n"),
                             ("python gen.py > g.log &\nwait\n[ -s g.log ] || python gen.py --retry\npython dpo.py\n", "note: line 3: the exit code of `'[' -s g.log ']'` is made up here"),
                             ("run() { \"$@\"; }\nrun python merge.py out/*.npz\n",
                              "gets out/*.npz as it is: where the script expands it without quotes, bash passes the files that match it on the cluster\n"),
                             ("#SBATCH --gpus-per-node=8\nCUDA_VISIBLE_DEVICES=4,5,6,7 python train.py\nCUDA_VISIBLE_DEVICES=0 python ref.py\n",
                              "note: line 2: learner has GPUs from 4 on in the script: the plan gives it GPUs from the first on\n"),
                             ("for i in 1 2 3; do\n  srun python a.py $i\ndone\n", "note: line 2: if a or a-2 fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             ("python prep.py & P=$!\npython train.py\nwait $P && python last.py\n",
                              "note: line 1: if prep fails, the script lets learner run to its end: here the run stops it\n"),
                             ("vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do sleep 1; done\nC=()\nfor p in 1 2; do python infer.py $p & C+=($!); done\nfor c in ${C[@]}; do wait $c; done\nkill $S\n",
                              "note: line 4: if learner fails, the script lets learner-2 run to its end: here the run stops it\n"),
                             ("vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do sleep 1; done\npython infer.py\nkill $S\n",
                              "note: line 1: the script waits for engine without a limit, whatever becomes of it: here the run fails with it, or when its `ready` takes too long\n"),
                             ("if [ ! -f q4 ]; then python quantize.py; fi\nif [ -f q4 ]; then python train.py; fi\npython report.py\n",
                              "q4 exists, and a program before may have made it: what it does then is not imported\n"),
                             ("export OPENAI_API_KEY=${OPENAI_API_KEY}\npython a.py\n",
                              "note: line 1: OPENAI_API_KEY is empty here: nlaunch requires a value in its environment, and the script does not\n"),
                             ("vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do kill -0 $S || exit 1; sleep 1; done\npython infer.py\nkill $S\n",
                              "note: line 1: the script waits for engine without a limit while it runs: here the run fails when its `ready` takes too long\n"),
                             ("vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do sleep 1; done\npython infer.py\nkill $S\n",
                              "note: line 1: if engine exits after it has answered, the script goes on: here the run stops, and fails\n"),
                             ("vllm serve m & S=$!\nuntil curl -s localhost:8000/health; do sleep 1; done\npython infer.py\nkill $S\n",
                              "note: line 2: any answer of engine, also an error, ends the script's wait: here only a success does (`ready: {http: ...}`)\n"),
                             ("vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do sleep 1; done\npython infer.py\nkill $S\nwait $S\n",
                              "note: line 5: the script exits with the code of what it has killed (143 for SIGTERM): the run exits with 0\n"),
                             ("until vllm serve m; do sleep 1; done &\nL=$!\nuntil curl -sf localhost:8000/health; do sleep 1; done\npython infer.py\nkill $L\n",
                              "note: line 1: the script starts engine again if it fails: here the run then stops\n"),
                             ("vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do sleep 1; done\npython a.py\nsleep 30\npython b.py\nkill $S\n",
                              "note: line 4: `sleep 30` is not imported: the next program starts at once\n"),
                             ("trap 'python upload.py --dir out' EXIT\npython train.py\n", "note: line 1: trap 'python upload.py --dir out' EXIT: the script starts upload also after a failure: here it starts only after a success\n"),
                             ("bash -lc 'python train.py'\n", "note: line 1: `bash -l` reads the profile of a login on the cluster: what it sets is not imported\n"),
                             ("python train.py --dir $SLURM_TMPDIR\n", "note: line 1: nothing sets $SLURM_TMPDIR, so it was empty: set it with --env SLURM_TMPDIR=VALUE\n"),
                             ("git pull || true\npython train.py\n", "note: line 1: if git fails, the script goes on and exits with 0: here the run stops, and fails\n"),
                             ("srun bash -c 'for s in 1 2; do python a.py $s; done'\n", "note: line 1: if a fails, the script exits with 0: here the run fails\n"),
                             ("curl -s localhost:81/health && echo up\npython train.py\n",
                              "note: line 1: the script asks `curl -s localhost:81/health` once, and starts the same programs whether it gets an answer or not: it is not imported\n"),
                             ("for i in 1 2 3 4; do curl -s localhost:81/health && break; sleep 1; done\npython train.py\n",
                              "note: line 1: it waits as the script does, until this exits with code 0; after 4 times without an answer the script goes on, and the run waits on\n"),
                             ("python a.py &\npython train.py\n", "note: line 1: a goes on when the script has ended: here the run stops it\n"),
                             ("env -u FOO_DEBUG python train.py\n", "note: line 1: the script removes FOO_DEBUG, which was not set here"),
                             ("env -i A=1 python train.py\n", "note: line 1: `env -i` starts the program without the variables of the shell that calls the script: here it also gets those"),
                             ("#SBATCH --gpus-per-node=4\nCUDA_VISIBLE_DEVICES=1 python b.py\nCUDA_VISIBLE_DEVICES=3 python c.py\n",
                              "note: line 3: learner has GPUs from 3 on in the script: the plan gives it GPUs from the first on\n"),
                             ("ulimit -n 4096\npython train.py\n", "note: line 1: ulimit -n 4096: not imported\n")):
            with self.subTest(script):
                result, experiment, _ = self.import_text(script)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(note, result.stderr)
                self.assertIn(note.removeprefix("note: "), experiment.replace("# ", ""))

    def test_what_the_script_stops_does_not_end_the_run(self):
        begin = "vllm serve m --port 8000 &\nuntil curl -sf localhost:8000/health; do sleep 1; done\npython client.py\n"
        for end in ("kill %1\nwait\n", "pkill -f 'vllm serve'\nwait\n", "killall vllm\nwait\n", "kill $(jobs -p)\nwait\n"):
            with self.subTest(end):
                roles = self.roles(begin + end)
                self.assertNotIn("ends_run", roles["engine"])

    def test_what_was_waited_for_is_not_killed_behind_that(self):
        text = "for f in 0 1; do\n  for i in 0 1; do python client.py --id $i --fold $f & done\n  wait\n  pkill -f client.py\ndone\npython average.py\n"
        _, experiment, _ = self.planned(text)
        self.assertEqual(experiment["start"], [["client", "client-2"], ["client-3", "client-4"], ["learner"]])

    def test_a_cluster_of_ray_without_a_driver_has_the_gpus(self):
        text = ("#SBATCH --gpus-per-node=4\nray start --head --port=6379 --block &\nwait $!\n")
        self.assertEqual(self.roles(text)["ray-head"]["gpus"], 4)

    def test_hundreds_of_programs_are_one_error(self):
        result = self.refusal("for i in $(seq 400); do python a.py $i; done\n")
        self.assertIn("the script starts 400 programs, and an experiment has at most 256 roles", result)
        self.assertEqual(result.count("error"), 1, result)

    def test_a_query_that_tries_again_itself_is_a_wait(self):
        text = "./serve.sh &\ncurl -s --retry 60 --retry-connrefused --retry-delay 5 localhost:9000/health\npython a.py\n"
        self.assertIn("wait", self.roles(text))

    def test_a_single_process_of_accelerate_is_not_a_rank(self):
        one = "#SBATCH --gpus-per-node=%d\naccelerate launch %strain.py\n"
        self.assertNotIn("rendezvous", self.roles(one % (1, ""))["learner"])
        self.assertNotIn("rendezvous", self.roles(one % (4, "--num_processes 1 "))["learner"])
        self.assertEqual(self.roles(one % (4, ""))["learner"]["rendezvous"], "torch")

    def test_all_jobs_of_the_shell_are_waited_for(self):
        text = "for i in 0 1 2; do\n  python ev.py --task $i &\ndone\nfor j in $(jobs -p); do wait $j || exit 1; done\npython train.py\n"
        for _ in range(3):  # what runs in the background ends at any time
            roles = self.roles(text)
            self.assertEqual([roles[name]["kind"] for name in ("ev", "ev-2", "ev-3")], ["task"] * 3)

    def test_what_is_no_other_job_is_not_said(self):
        for script, note in (
                ("python train.py &\nwhile true; do\n  if ! kill -0 $!; then break; fi\n  sleep 30\ndone\n", "the script ends after"),
                ("python train.py &\nwhile sleep 60; do kill -0 $! || break; done\n", "the script ends after"),
                ("python train.py & PIDS=\"$PIDS $!\"\nwait\n", "process id, which"),
                ("python train.py & pids[$i]=$!\nwait\n", "process id, which"),
                ("python train.py & echo $! > train.pid\nwait\n", "process id, which"),
                ("C=$(git rev-parse --verify HEAD)\npython train.py $C\n", "the exit code of"),
                ("lsof -i :8000 || true\npython train.py\n", "the exit code of"),
                ("grep -qE \"((ERROR|FATAL))\" log\npython train.py\n", "nothing sets"),
                ("python -c \"print((alpha + beta))\"\npython train.py\n", "nothing sets"),
                ("python train.py $(( ${FOO:-ten} ))\n", "nothing sets"),
                ("let STEP++\npython train.py $((STEP))\n", "nothing sets")):
            with self.subTest(script):
                self.assertNotIn(note, self.import_text(script)[0].stderr)


if __name__ == "__main__":
    unittest.main()
