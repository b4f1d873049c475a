#!/usr/bin/env python3
"""`nlaunch import --commands`: the table of what a script would start."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import Import  # noqa: E402

REFUSED = 65
USAGE = 64

JOB = """#!/bin/bash
#SBATCH --job-name=grpo --nodes=2
#SBATCH --gpus-per-node=4 --cpus-per-task=16
set -euo pipefail
source /cluster/venv/bin/activate
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
args=(--model "$1")
args+=(--nodes $SLURM_NNODES --cpus $SLURM_CPUS_PER_TASK)
cat > engine.sh <<EOF
#!/bin/bash
vllm serve $1 --port 8000
EOF
srun --overlap -N1 -n1 -w "$head" bash engine.sh > engine.log 2>&1 &
until curl -sf http://$head:8000/health; do sleep 5; done
step=$(python newest.py)
srun --ntasks-per-node=1 torchrun --nnodes $SLURM_NNODES --rdzv_endpoint $head:29500 train.py "${args[@]}" --from "$step"
"""
TABLE = """job.sbatch: 2 nodes with 4 GPUs and 1 task each

line                     where                     command
6            queries                               scontrol show hostnames 'rec-node-[0-1]'
13           launches    in the background         srun --overlap -N1 -n1 -w rec-node-0 bash engine.sh
engine.sh:2  starts      rank (node) 0 (0)         vllm serve m --port 8000
14           queries                               curl -sf http://rec-node-0:8000/health
15           starts                                python newest.py
16           launches                              srun --ntasks-per-node=1 torchrun --nnodes 2 --rdzv_endpoint rec-node-0:29500 train.py --model m --nodes 2 --cpus 16 --from ''
16           starts      rank (node) 0 (0), 1 (1)  torchrun --nnodes 2 --rdzv_endpoint rec-node-0:29500 train.py --model m --nodes 2 --cpus 16 --from ''

Line 15 reads the output of this command, which is unknown because it did not run: python newest.py
Not on this machine, and assumed to be empty: /cluster/venv/bin/activate
"""


class Commands(Import):
    def commands(self, text, *more):
        (self.folder / "job.sbatch").write_text(text)
        return self.run_import("job.sbatch", "--commands", *more, cwd=self.folder)

    def test_the_table_has_each_command_with_its_line_and_its_tasks(self):
        done = self.commands(JOB, "--", "m")
        squeezed = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(squeezed, [line.split() for line in TABLE.splitlines()])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_sizes_and_variables_may_be_given(self):
        done = self.commands('srun python x.py $A $SLURM_NNODES $SLURM_GPUS_ON_NODE "$1"\n', "--nodes", "3", "--gpus", "8", "--env", "A=a b", "--", "c d")
        self.assertIn("job.sbatch: 3 nodes with 8 GPUs and 1 task each\n", done.stdout)
        self.assertIn("python x.py a b 3 8 'c d'\n", done.stdout)

    def test_a_script_that_ends_early_says_with_what(self):
        done = self.commands("set -u\npython a.py\npython b.py $DATA\n")
        self.assertEqual(done.returncode, REFUSED)
        self.assertTrue(done.stdout.endswith(
            "The script exited with 1 at line 3: it may start more if nothing is missing. Pass arguments after --, variables with --env NAME=VALUE. It printed:\n"
            f"  {self.folder}/job.sbatch: line 3: DATA: unbound variable\n"
            "Not found here:\n  line 3: $DATA is unset: set it with --env DATA=VALUE\n"), done.stdout)
        done = self.commands('echo "usage: $0 MODEL"\nexit 2\n')
        self.assertEqual(done.stdout, "job.sbatch: 1 node with 0 GPUs and 1 task each\nIt starts no program.\nThe script exited with 2 at line 2: it may start more if "
                                      f"nothing is missing. Pass arguments after --, variables with --env NAME=VALUE. It printed:\n  usage: {self.folder}/job.sbatch MODEL\n")

    def test_options_that_exclude_each_other_are_named_before_arguments_too(self):
        (self.folder / "job.sh").write_text("python a.py $1\n")
        result = self.run_import("job.sh", "--check", "--output", "out", "--", "x", cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (USAGE, "nlaunch import: --output excludes --check\nsee nlaunch import --help\n"))

    def test_secrets_are_not_printed(self):
        done = self.commands("export HF_TOKEN=hf_abcdefghijklmnop\npython x.py --token $HF_TOKEN --url https://u:pa55word@host/\nexport NAME=$HF_TOKEN\nexit 3 # $HF_TOKEN\n")
        self.assertIn("python x.py --token *** --url https://u:***@host/\n", done.stdout)
        self.assertNotIn("hf_abc", done.stdout)

    def test_terminal_escapes_are_shown(self):
        self.assertIn("python $'\\033[31m'\n", self.commands("python $'\\e[31m'\n").stdout)

    def test_what_does_not_fit_is_refused(self):
        for words, sentence in ((["--env", "A"], "'A' has no = after the name"), (["--exists", ""], "an empty path names no file"), (["--nodes", "0"], "--nodes"), (["--stdout"], "--stdout")):
            with self.subTest(words):
                done = self.commands("python x.py\n", *words)
                self.assertEqual(done.returncode, USAGE)
                self.assertIn(sentence, done.stderr)


if __name__ == "__main__":
    unittest.main()
