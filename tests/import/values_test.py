#!/usr/bin/env python3
"""`nlaunch import` of variables: what they are, as far as that stands in the script, who has them, and which are secrets."""
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import Import  # noqa: E402


class Values(Import):
    """What a variable is, as far as that stands in the script; else a comment."""

    def learner(self, script):
        return self.planned(script)[1]["roles"]["learner"]["command"]

    def test_texts_and_arrays_grow(self):
        self.assertEqual(self.learner('A="--lr 1"; A+=" --bs 2"; ARGS=(--x 1); ARGS+=(--y 2); python train.py $A "${ARGS[@]}"\n'),
                         ["python", "train.py", "--lr", "1", "--bs", "2", "--x", "1", "--y", "2"])
        self.assertEqual(self.learner('A="a"\nA="$A b"\nA="$A c"\npython train.py $A\n'), ["python", "train.py", "a", "b", "c"])
        _, _, profile = self.planned('S="--container-image=a.sqsh"\nS+=" --container-mounts=/x:/x"\nsrun $S python train.py\n')
        self.assertEqual(profile["scheduler"]["srun"], ["--container-image=a.sqsh", "--container-mounts=/x:/x"])

    def test_elements_of_arrays(self):
        self.assertEqual(self.learner('LRS=(1e-6 3e-6 1e-5); I=2; python train.py ${LRS[1]} "${LRS[@]}" ${#LRS[@]} "${LRS[-1]}" "${LRS[$I]}" "a ${LRS[*]}" $LRS\n'),
                         ["python", "train.py", "3e-6", "1e-6", "3e-6", "1e-5", "3", "1e-5", "1e-5", "a 1e-6 3e-6 1e-5", "1e-6"])
        for made in ("N=($(scontrol show hostnames $SLURM_JOB_NODELIST))", "mapfile -t N < <(scontrol show hostnames)"):
            with self.subTest(made):
                script = f'#SBATCH -N 4\n{made}\nsrun python train.py --head ${{N[0]}} --server "${{N[3]}}" --n ${{#N[@]}}\n'
                self.assertEqual(self.learner(script), ["bash", "-c", 'exec python train.py --head "$MASTER_ADDR" --server "$${N[3]}" --n 4'])
                self.assertIn("    # line 3: N is a variable of the script, which no process here has: ${role.NAME.hosts} are the hosts of a role\n",
                              self.import_text(script)[1])
        for script in ("A=($(ls))\npython train.py ${#A[@]}\n", "A=(1 2)\nA[5]=x\npython train.py ${A[5]}\n", "X=a\npython train.py \"$(basename $X)\"\n"):
            with self.subTest(script):
                name = script[0]
                self.assertIn(f"{name} is a variable of the script, which no process here has\n", self.import_text(script)[1])
        _, text, _ = self.import_text('#SBATCH -N 2\nN=$(scontrol show hostnames $SLURM_JOB_NODELIST)\nsrun python train.py --hosts "$N"\n')
        self.assertIn("    # line 3: the names of all nodes: here it is the first one's, and ${role.NAME.hosts} those of a role\n", text)

    def test_a_value_of_a_loop_or_a_condition_is_said(self):
        changed = "{0} gets another value here, and has the first one: "
        for script, command, *lines in (
                ('MODEL=""\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    --model) MODEL="$2"; shift 2;;\n  esac\ndone\npython train.py --model $MODEL\n',
                 ["--model", ""], [4, changed.format("MODEL") + '--model) MODEL="$2"; shift 2;;']),
                ('if a; then B=1; else B=2; fi\npython train.py $B\n', ["1"], [1, changed.format("B")]),
                ('if a; then B=1; fi\npython train.py $B\n', ["1"], [1, "B is set in a loop or under a condition: if a; then B=1; fi"]),
                ('[ -z "$A" ] && B=1\npython train.py $B\n', ["1"], [1, "B is set in a loop or under a condition: "]),
                ('B=1\na || B=2\npython train.py $B\n', ["1"], [2, changed.format("B")]),
                ('for a in "$@"; do\n  EXTRA="$EXTRA $a"\ndone\npython train.py $EXTRA\n', ["${env.EXTRA:-}", "${env.a:-}"],
                 [1, 'a is the loop\'s, whose words only the running script knows: for a in "$@"; do'],
                 [2, 'EXTRA is set in a loop or under a condition: EXTRA="$EXTRA $a"']),
                ('A=x\nfor i in 1 2; do\n  A+=" $i"\ndone\npython train.py $A\n', ["x", "1"],
                 [3, 'A grows here in a loop or under a condition, and has it once: A+=" $i"']),
                ('read -r A < file\npython train.py "$A"\n', ["${env.A:-}"], [1, "A is read when the script runs: read -r A < file"]),
                ('python train.py $A\n', ["${env.A:-}"], [1, "bash makes words of $A without quotes, and none where it is empty: here it is one"])):
            with self.subTest(script):
                self.assertEqual(self.learner(script), ["python", "train.py", *command])
                _, text, _ = self.import_text(script)
                for line, said in lines:
                    self.assertIn(f"    # line {line}: {said}", text)
        _, text, _ = self.import_text("i=0\nfor n in $NODES; do\n  ssh $n \"python train.py --node_rank $i\" &\n  i=$((i+1))\ndone\nwait\n")
        self.assertIn("    # line 2: n is the loop's, whose words only the running script knows: for n in $NODES; do\n", text)
        self.assertIn("    # line 4: i gets another value here, and has the first one: i=$((i+1))\n", text)
        _, text, _ = self.import_text("A=1\nif x; then A=2; fi\nexport A\npython train.py\n")
        self.assertIn("# line 2: of A: A gets another value here, and has the first one: if x; then A=2; fi\n", text)
        for script in ("A=1\nA=2\npython train.py $A\n", "A=1\nif x; then A=1; fi\npython train.py $A\n",
                       "f() {\n  A=1\n  python train.py $A\n}\nf\n"):
            self.assertNotIn("A is set", self.import_text(script)[1])
            self.assertNotIn("another value", self.import_text(script)[1])

    def test_a_text_of_several_lines(self):
        text = "python train.py --a 1 \\\n  --b \"x y\"\n"
        for made, command in ((f"read -r -d '' CMD <<E\n{text}E\n", ["python", "train.py", "--a", "1", "--b", "x y"]),
                              (f"CMD=$(cat <<E\n{text}E\n)\n", ["bash", "-c", 'python train.py --a 1   --b "x y"'])):
            with self.subTest(made):
                self.assertEqual(self.learner(made + 'srun bash -c "${CMD}"\n'), command)
        _, text, _ = self.import_text("D=$(cat <<'E'\n{\"a\": \"$b\"}\nE\n)\npython train.py \"$D\"\n")
        self.assertEqual(yaml.safe_load(text)["roles"]["learner"]["command"], ["python", "train.py", '{"a": "$b"}'])

    def test_words_without_quotes_are_left_to_a_shell(self):
        self.assertEqual(self.learner('python train.py $(cat args) "$(cat b)"\n'), ["bash", "-c", 'exec python train.py $(cat args) "$(cat b)"'])
        self.assertEqual(self.learner('A=""\npython train.py $A "$A"\n'), ["python", "train.py", ""])


class Shells(Import):
    """What `bash -c` sets, its programs have."""

    def test_what_it_exports(self):
        _, experiment, _ = self.planned("#SBATCH -N 2\nsrun bash -c 'export NCCL_DEBUG=INFO; export A=1 B=$SLURM_NNODES && C=7; export C; export PATH=/o/bin:$PATH; "
                                        "D=8; HF_HOME=/x python train.py $D'\npython after.py $D\n")
        learner = experiment["roles"]["learner"]
        self.assertEqual(learner["env"], {"set": {"NCCL_DEBUG": "INFO", "A": "1", "B": "2", "C": "7", "HF_HOME": "/x"}, "prepend": {"PATH": "/o/bin"}})
        self.assertEqual((learner["command"], "env" in experiment), (["python", "train.py", "8"], False))
        self.assertEqual(self.planned("srun bash <<E\nexport A=1\npython train.py\nE\n")[1]["roles"]["learner"]["env"], {"A": "1"})
        _, text, _ = self.import_text("srun bash -c 'if a; then export B=2; fi; python train.py'\n")
        self.assertIn("# line 1: only under a condition: srun bash -c 'if a; then export B=2; fi; python train.py'\n", text)
        self.assertEqual(self.planned("eval 'export A=1'\npython train.py\n")[1]["env"], {"A": "1"})

    def test_variables_that_are_nlaunch_s_own(self):
        script = "#SBATCH --ntasks=8\nsrun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS A=1 python train.py'\n"
        self.assertEqual(self.planned(script)[1]["roles"]["learner"]["env"], {"A": "1"})
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            self.assertIn(f"    # line 2: {name} is nlaunch's own for each process\n", self.import_text(script)[1])

    def test_a_script_that_the_caller_has(self):
        for script in ('srun bash -c "$COMMAND"\n', 'srun bash -c "${COMMAND:-}"\n'):
            self.assertEqual(self.planned(script)[1]["roles"]["learner"]["command"], ["bash", "-c", "${env.COMMAND:-}"])

    def test_what_the_outer_shell_expands_within_single_quotes(self):
        self.assertEqual(self.planned("N=x\nsrun bash -c \"python train.py --n '$N' --m $N\"\n")[1]["roles"]["learner"]["command"],
                         ["python", "train.py", "--n", "x", "--m", "x"])


class Secrets(Import):
    def test_no_secret_is_in_what_is_written(self):
        keys = ["0123456789abcdef0123456789abcdef01234567", "hf_abcdefghijklmnop", "s3cr3t-word", "sk-1234567890abcdef"]
        script = ("#!/bin/bash\n#SBATCH -N 1\n"
                  f"export WANDB_API_KEY={keys[0]}\nexport HF_TOKEN='{keys[1]}'\nexport https_proxy=http://me:{keys[2]}@proxy:80\n"
                  f"MY_KEY={keys[3]}\nwandb login {keys[0]}\ncurl -H 'Authorization: Bearer {keys[3]}' https://example.org/\n"
                  f"OPENAI_API_KEY={keys[3]} python serve.py --token {keys[1]} --api-key=$MY_KEY &\n"
                  f"cp -r x y --password {keys[2]}\npython train.py --hub-token {keys[1]}\n")
        result, experiment, profile = self.import_text(script)
        self.assertEqual(result.returncode, 0, result.stderr)
        for key in keys:
            self.assertNotIn(key, experiment + profile + result.stderr)
        self.assertEqual(yaml.safe_load(experiment)["secrets"]["WANDB_API_KEY"], "env")

    def test_where_a_secret_is_read_from(self):
        _, experiment, _ = self.planned("export WANDB_API_KEY=$(awk '/api\\.wandb\\.ai/{getline;print $2}' ~/.netrc)\nexport HF_TOKEN=$(cat \"$HOME/.hf\")\n"
                                        "export A_TOKEN=$(< ~/.a)\nexport B_TOKEN=${B_TOKEN}\npython train.py\n")
        self.assertEqual(experiment["secrets"], {"WANDB_API_KEY": {"netrc": "api.wandb.ai"}, "HF_TOKEN": {"file": "~/.hf"}, "A_TOKEN": {"file": "~/.a"},
                                                 "B_TOKEN": "env"})

    def test_a_secret_in_a_container_s_options_is_declared(self):
        for options, kept in (("--env HF_TOKEN=hf_abcdefghijkl12 --env A=b", ["--env", "A=b"]), ("--env=A=b,HF_TOKEN=$HF_TOKEN", ["--env=A=b"]),
                              ("--nv --env=HF_TOKEN=hf_abcdefghijkl12", ["--nv"]), ("-e HF_TOKEN=hf_abcdefghijkl12,B=1", ["-e", "B=1"])):
            with self.subTest(options):
                script = f"apptainer exec {options} a.sif python train.py\n"
                _, experiment, _ = self.planned(script)
                self.assertEqual((experiment["roles"]["learner"]["wrapper"], experiment["secrets"]),
                                 (["apptainer", "exec", *kept, "a.sif"], {"HF_TOKEN": "env"}))
                _, text, _ = self.import_text(script)
                self.assertIn("  HF_TOKEN: env  # line 1; was given on a command line: it is taken from the environment in which nlaunch is called\n", text)
                self.assertNotIn("***", text)
        _, experiment, _ = self.planned("export HF_TOKEN=$(cat ~/.hf)\napptainer exec --env HF_TOKEN=$HF_TOKEN a.sif python train.py\n")
        self.assertEqual((experiment["secrets"], experiment["roles"]["learner"]["wrapper"]),
                         ({"HF_TOKEN": {"file": "~/.hf"}}, ["apptainer", "exec", "a.sif"]))


if __name__ == "__main__":
    unittest.main()
