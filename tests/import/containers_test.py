"""`nlaunch import` of scripts whose programs are in containers: wrappers, the site's step, what is left out."""
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from importing import SOURCE, Import  # noqa: E402


class Containers(Import):
    def test_the_container_of_a_command_is_the_wrapper_of_its_role(self):
        for tool, wrapper in (("apptainer exec --nv trl.sif", ["apptainer", "exec", "--nv", "trl.sif"]),
                              ("srun singularity run --nv docker://a/b:1", ["singularity", "run", "--nv", "docker://a/b:1"]),
                              ("apptainer exec --nv ${IMAGE:-x}", ["apptainer", "exec", "--nv", "${env.IMAGE:-x}"]),
                              ("enroot start --rw pytorch", ["enroot", "start", "--rw", "pytorch"])):
            with self.subTest(tool):
                _, experiment, _ = self.planned(f"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=2\nA=1 {tool} python train.py --x\n")
                learner = experiment["roles"]["learner"]
                self.assertEqual((learner["wrapper"], learner["command"]), (wrapper, ["python", "train.py", "--x"]))

    def test_a_container_with_options_that_a_shell_makes_is_a_remark(self):
        result, experiment, _ = self.import_text("#!/bin/bash\napptainer exec --nv $(pick-image) python train.py\n")
        self.assertIn("# line 2: wrapper: [...] is its container, of which only a shell knows the options: apptainer exec", experiment)
        self.assertNotIn("wrapper", yaml.safe_load(experiment)["roles"]["learner"], result.stdout)

    def test_a_container_of_a_daemon_is_left_out_and_said(self):
        inside = 'bash -c "cd /w && python train.py"'
        for tool, verb, image in (("docker run --gpus all --rm trl:1", "docker run", "docker://trl:1"),
                                  ("podman-hpc run --gpu -v $PWD:/w docker://a/b:1", "podman-hpc run", "docker://a/b:1"),
                                  ("docker exec worker", "docker exec", "docker://IMAGE"),
                                  ("docker run --rm $(pick)", "docker run", "docker://IMAGE")):
            with self.subTest(tool):
                script = f"#!/bin/bash\n{tool} {inside}\n"
                _, experiment, _ = self.planned(script)
                self.assertEqual((experiment["roles"]["learner"]["command"], experiment.get("workdir")), (["python", "train.py"], None))
                _, text, _ = self.import_text(script)
                self.assertIn(f"# line 2: the container of `{verb}` is left out, since its processes would be those of a daemon: wrapper: "
                              f"[apptainer, exec, --nv, {image}]\n", text)
                self.assertIn("# line 2: cd /w is within the image: ", text)

    def test_the_container_of_a_step_is_that_of_the_site(self):
        step = "srun --container-image=/i/a.sqsh --container-mounts /data:/data --no-container-mount-home python train.py\n"
        _, _, profile = self.planned(f"#!/bin/bash\n#SBATCH -N 2\n{step}")
        self.assertEqual(profile["scheduler"]["srun"],
                         ["--container-image=/i/a.sqsh", "--container-mounts=/data:/data", "--no-container-mount-home"])
        other = "srun -N1 --container-image=/i/b.sqsh vllm serve m &\nsrun --container-image=$(pick) python more.py &\n"
        result, _, profile = self.import_text(f"#!/bin/bash\n#SBATCH -N 2\n{other}{step}")
        self.assertIn("# line 3: the container of nlaunch's step, and so of all roles: docs/containers.md, pyxis\n", profile)
        self.assertIn("# line 4: srun --container-image: its value is made when the script runs; `wrapper:` gives a role", profile)
        self.assertIn("# line 5: srun --container-image: nlaunch's step has one for all; `wrapper:` gives a role a container of "
                      "its own\n", profile)

    def test_the_image_of_the_job_s_directives(self):
        _, experiment, profile = self.planned("#!/bin/bash\n#SBATCH -N 2\n#SBATCH --uenv=pytorch/v2.6.0\n#SBATCH --view=default\n"
                                              "srun python train.py\n")
        self.assertEqual((experiment["slurm"], "srun" in profile["scheduler"]), ({"uenv": "pytorch/v2.6.0", "view": "default"}, False))
        script = ("#!/bin/bash\n#SBATCH -N 2\n#SBATCH --environment=ngc\n#SBATCH --container-mounts=/a:/a\n"
                  "srun --container-mounts=/b:/b --uenv=p/v1 --view default python train.py\n")
        _, experiment, profile = self.planned(script)
        self.assertEqual(profile["scheduler"]["srun"], ["--environment=ngc", "--container-mounts=/b:/b", "--uenv=p/v1", "--view=default"])
        self.assertNotIn("slurm", experiment)
        _, text, profile = self.import_text(script)
        self.assertIn("# line 3: --environment of nlaunch's step, and so of all roles\n"
                      "# line 5: --uenv of nlaunch's step, and so of all roles\n", profile)
        self.assertNotIn("no option of sbatch", text)

    def test_what_srun_asks_for_besides_is_a_comment(self):
        script = ("#!/bin/bash\n#SBATCH -N 2\nsrun --mpi=pmix hostname\n"
                  "srun -N1 -n 1 -l -m block:cyclic --mpi=pmix --cpu-bind cores --cpus-per-task=72 --mem=0 python train.py\n")
        _, _, profile = self.import_text(script)
        self.assertIn("# line 4: srun --distribution=block:cyclic --mpi=pmix --cpu-bind=cores --cpus-per-task=72: nlaunch's step, which starts an "
                      "agent on each node, has this only if it is given here, by `srun:`\n", profile)
        self.assertEqual(profile.count("nlaunch's step"), 1)

    def test_the_run_s_folder_in_a_container_s_options_is_absolute(self):
        here = str(SOURCE)
        options = "--bind $PWD:$PWD,$PWD/data:/data --env=HERE=$PWD --pwd $PWD/src"
        for cd, folder in (("", here), ("cd sub\n", f"{here}/sub"), ("cd /proj/x\n", "/proj/x"), ("cd $HOME/x\n", "${env.HOME}/x")):
            with self.subTest(cd):
                script = f"{cd}apptainer exec {options} $PWD/a.sif python train.py $PWD\n"
                _, text, _ = self.import_text(script)
                learner = yaml.safe_load(text)["roles"]["learner"]
                self.assertEqual(learner["wrapper"], ["apptainer", "exec", "--bind", f"{folder}:{folder},{folder}/data:/data",
                                                      f"--env=HERE={folder}", "--pwd", f"{folder}/src", "./a.sif"])
                self.assertEqual(learner["command"], ["python", "train.py", "."])
                line = 2 if cd else 1
                self.assertIn(f"    # line {line}: $PWD in the container's options is {folder}, the folder of the run\n", text)
        script = "#!/bin/bash\n#SBATCH -N 2\nsrun --container-image=$PWD/a.sqsh --container-mounts=$PWD:$PWD python train.py\n"
        _, _, profile = self.planned(script)
        self.assertEqual(profile["scheduler"]["srun"], [f"--container-image={here}/a.sqsh", f"--container-mounts={here}:{here}"])
        self.assertEqual(self.import_text(script)[2].count(f"# line 3: $PWD in the container's options is {here}, the folder of the run\n"), 1)
        script = self.folder / "a.sbatch"
        script.write_text("apptainer exec --pwd $PWD a.sif python train.py\n")
        self.assertEqual(self.run_import(script, "--output", self.folder / "new").returncode, 0)
        made = yaml.safe_load((self.folder / "new" / "a.yaml").read_text())
        self.assertEqual(made["roles"]["learner"]["wrapper"], ["apptainer", "exec", "--pwd", str(self.folder / "new"), "a.sif"])

    def test_a_folder_within_an_image_is_not_the_run_s(self):
        _, experiment, _ = self.import_text("#!/bin/bash\napptainer exec a.sif bash -c 'cd /w && python train.py'\n")
        self.assertIn("# line 2: cd /w is within the image: the option of its tool for that (apptainer: --pwd) goes into the wrapper\n",
                      experiment)
        self.assertNotIn("workdir", yaml.safe_load(experiment))


if __name__ == "__main__":
    unittest.main()
