#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

std::string job(const std::string& directives, const std::string& text = "python a.py\n") {
  return "#!/bin/bash\n#SBATCH " + directives + "\n" + text;
}

Texts of(const char* rule, const std::string& text) {
  return found(rule, script(text));
}

TEST(OutputOverwritten, ANameWithoutTheJobs) {
  EXPECT_EQ(of("output-overwritten", job("--output=log.txt")),
            Texts{"note job.sh:2:1 the next job overwrites log.txt"});
  EXPECT_EQ(of("output-overwritten", job("-e %x.err")).size(), 1U);
  EXPECT_EQ(of("output-overwritten", job("-o log-%a.txt --array=0-1")).size(), 1U);
  EXPECT_EQ(of("output-overwritten", job("-o log-%A_%a.txt --array=0-1")), Texts{});
  for (const std::string right :
       {"-o %j.out", "-o /dev/null", "-o log.txt --open-mode=append", "-o log.txt --array=0-1", "-N 1"})
    EXPECT_EQ(of("output-overwritten", job(right)), Texts{}) << right;
}

TEST(RequeueTruncates, WithoutAppend) {
  EXPECT_EQ(of("requeue-truncates", job("--requeue")),
            Texts{"note job.sh:2:1 a job that Slurm requeues overwrites its log"});
  EXPECT_EQ(of("requeue-truncates", job("--requeue --open-mode=append")), Texts{});
}

TEST(Mail, WithoutAnOccasion) {
  EXPECT_EQ(of("mail", job("--mail-user=a@b")),
            Texts{"note job.sh:2:1 no mail is sent: --mail-type is missing"});
  EXPECT_EQ(of("mail", job("--mail-user=a@b --mail-type=END")), Texts{});
}

TEST(Nodelist, MoreThanNodes) {
  EXPECT_EQ(of("nodelist", job("-N 1 -w a,b")),
            Texts{"error job.sh:2:1 the job has 1 node, but 2 hosts are named"});
  for (const std::string right : {"-N 2 -w a,b", "-w a,b", "-N 1 -w a[1-2]", "-N 2 -w a"})
    EXPECT_EQ(of("nodelist", job(right)), Texts{}) << right;
}

TEST(OneCpu, GpusAlone) {
  EXPECT_EQ(of("one-cpu", job("--gres=gpu:2")), Texts{"note job.sh:2:1 GPUs are requested, but no CPUs"});
  for (const std::string right :
       {"--gres=gpu:2 -c 8", "--gres=gpu:2 --cpus-per-gpu=8", "--gres=gpu:2 --exclusive", "-N 1"})
    EXPECT_EQ(of("one-cpu", job(right)), Texts{}) << right;
  EXPECT_EQ(of("one-cpu", job("--gres=gpu:2", "srun -c 8 python a.py\n")), Texts{});
  EXPECT_EQ(whole("one-cpu", script(job("--gres=gpu:2", "python a.py\n"))).at(2),
            "#SBATCH --cpus-per-task=N, or --cpus-per-gpu=N");
  EXPECT_EQ(whole("one-cpu", script(job("--gres=gpu:2", "srun python a.py\n"))).at(2),
            "#SBATCH --cpus-per-task=N and srun --cpus-per-task=N (since Slurm 22.05 a step does not inherit "
            "it), or #SBATCH --cpus-per-gpu=N");
}

TEST(TasksWithoutStep, NothingStartsThem) {
  EXPECT_EQ(of("tasks-without-step", job("--ntasks-per-node=4")),
            Texts{"warning job.sh:2:1 4 tasks are requested, but nothing starts them"});
  for (const std::string right :
       {"srun python a.py\n", "torchrun a.py\n", "deepspeed a.py\n", "mpirun python a.py\n", "echo\n"})
    EXPECT_EQ(of("tasks-without-step", job("--ntasks-per-node=4", right)), Texts{}) << right;
}

TEST(Threads, MoreThanCpus) {
  EXPECT_EQ(of("threads", job("-c 16", "export OMP_NUM_THREADS=16\ntorchrun --nproc_per_node=4 a.py\n")),
            Texts{"note job.sh:3:8 4 processes with 16 threads each, on 16 CPUs"});
  EXPECT_EQ(of("threads", job("-c 16", "export OMP_NUM_THREADS=4\ntorchrun --nproc_per_node=4 a.py\n")),
            Texts{});
  EXPECT_EQ(of("threads", job("-c 8 --ntasks-per-node=4", "export OMP_NUM_THREADS=8\nsrun python a.py\n")),
            Texts{});
  EXPECT_EQ(of("threads", job("-N 1", "export OMP_NUM_THREADS=64\npython a.py\n")), Texts{});
}

TEST(LogsSwapped, OutputAndError) {
  EXPECT_EQ(of("logs-swapped", job("-o logs/err-%j.txt -e logs/out-%j.txt")),
            Texts{"warning job.sh:2:1 the output goes to err-%j.txt, and the errors go to out-%j.txt"});
  for (const std::string right :
       {"-o out.txt -e err.txt", "-o err.txt", "-o err/%j.out -e out/%j.err", "-o stdout_err -e out"})
    EXPECT_EQ(of("logs-swapped", job(right)), Texts{}) << right;
}

TEST(JobName, WithAPattern) {
  EXPECT_EQ(of("job-name", job("--array=0-3 -J train_%A_%a")),
            Texts{"warning job.sh:2:1 %A in --job-name is not replaced"});
  EXPECT_EQ(of("job-name", job("-J train-100% -o %x-%j.out")), Texts{});
}

TEST(SlurmUnset, WithoutItsOption) {
  EXPECT_EQ(
      whole("slurm-unset",
            script(job("--gres=gpu:4", "torchrun --nproc_per_node=$SLURM_GPUS_PER_NODE a.py\n"))),
      (Texts{
          "SLURM_GPUS_PER_NODE is empty: the job is not submitted with --gpus-per-node",
          "Slurm sets the variable only if that option is given: an argument with it is empty, and in $(( )) "
          "it is 0",
          "SLURM_GPUS_ON_NODE, which Slurm sets in each case, or #SBATCH --gpus-per-node=…",
          "sbatch(1), OUTPUT ENVIRONMENT VARIABLES"}));
  EXPECT_EQ(of("slurm-unset", job("-N 2", "N=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\npython a.py $N\n")),
            Texts{"warning job.sh:3:21 SLURM_NTASKS_PER_NODE is empty: the job is not submitted with "
                  "--ntasks-per-node"});
  EXPECT_EQ(
      of("slurm-unset", job("-n 2", "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK}\nsrun python a.py\n"))
          .size(),
      1U);
}

TEST(SlurmUnset, NotWhereItIsSetOrHandled) {
  const std::string use = "python a.py --gpus $SLURM_GPUS_PER_NODE\n";
  for (const std::string& fine :
       {job("--gpus-per-node=4", use), job("-N 1", use), job("--gres=gpu:4", "SLURM_GPUS_PER_NODE=4\n" + use),
        job("--gres=gpu:4", "G=${SLURM_GPUS_PER_NODE:-4}\n" + use),
        job("--gres=gpu:4", "if [ -z \"$SLURM_GPUS_PER_NODE\" ]; then exit 1; fi\n" + use),
        job("--gres=gpu:4", "# " + use),
        job("-n 2 --tasks-per-node=2", "python a.py $SLURM_NTASKS_PER_NODE\n"),
        job("--gres=gpu:4", "srun bash -c 'python a.py $SLURM_GPUS_PER_NODE'\n"), std::string(use)})
    EXPECT_EQ(of("slurm-unset", fine), Texts{}) << fine;
}

TEST(LogsSwapped, OfAStepAndByTheEndOfAName) {
  EXPECT_EQ(of("logs-swapped", job("-N 1", "srun --output=a-%j.err --error=a-%j.log python a.py\n")),
            Texts{"warning job.sh:3:6 the output goes to a-%j.err, and the errors go to a-%j.log"});
  EXPECT_EQ(of("logs-swapped", job("-N 1", "srun --output=a.log --error=a.err python a.py\n")), Texts{});
  EXPECT_EQ(of("logs-swapped", job("-o a.err")), Texts{});
}

TEST(GpuDirectives, DifferentNumbers) {
  EXPECT_EQ(whole("gpu-directives", script(job("--gres=gpu:2 --gpus-per-node=1"))),
            (Texts{"--gpus-per-node=1 contradicts --gres=gpu:2: both are GPUs per node",
                   "the job gets one of the two numbers, and only one is what was meant",
                   "keep one of the two", "sbatch(1), --gpus-per-node, --gres"}));
  EXPECT_EQ(of("gpu-directives", job("--gres=gpu:a100:4 --gpus-per-node=a100:8")).size(), 1U);
  for (const std::string fine :
       {"--gres=gpu:2 --gpus-per-node=2", "--gres=gpu:2", "--gres=gpu:a100:4 --gpus-per-node=4",
        "--gres=nvme:1 --gpus-per-node=4", "--gres=gpu:4,nvme:1 --gpus-per-node=4"})
    EXPECT_EQ(of("gpu-directives", job(fine)), Texts{}) << fine;
}

TEST(NoGpu, RequestedByAProgramThatNeedsOne) {
  EXPECT_EQ(whole("no-gpu", script(job("-N 1", "vllm serve m\n"))),
            (Texts{"vllm needs GPUs, but the job requests none",
                   "Slurm then gives it none, unless the partition allocates whole nodes",
                   "#SBATCH --gpus-per-node=N", "sbatch(1), --gpus; slurm.conf(5), OverSubscribe"}));
  EXPECT_EQ(of("no-gpu", job("-N 1", "torchrun --nproc_per_node=2 a.py\n")).size(), 1U);
  EXPECT_EQ(of("no-gpu", job("-N 1", "apptainer exec --nv a.sif python a.py\n")).size(), 1U);
  for (const std::string fine : {"--gpus=1", "--gres=gpu:1", "-G 1", "--exclusive", "--gpus-per-task=1"})
    EXPECT_EQ(of("no-gpu", job(fine, "vllm serve m\n")), Texts{}) << fine;
  for (const std::string fine :
       {"python a.py\n", "vllm serve m --device cpu\n", "srun --gpus=1 vllm serve m\n"})
    EXPECT_EQ(of("no-gpu", job("-N 1", fine)), Texts{}) << fine;
  EXPECT_EQ(of("no-gpu", "vllm serve m\n"), Texts{});
}

TEST(SlurmUnset, OneThatIsOnlyPrintedIsANote) {
  EXPECT_EQ(whole("slurm-unset", script("#SBATCH --gres=gpu:8\necho \"GPUs: $SLURM_GPUS_PER_NODE\"\n")),
            (Texts{"SLURM_GPUS_PER_NODE is printed, but it is empty: the job is not submitted with "
                   "--gpus-per-node",
                   "Slurm sets the variable only if that option is given",
                   "SLURM_GPUS_ON_NODE, which Slurm sets in each case",
                   "sbatch(1), OUTPUT ENVIRONMENT VARIABLES"}));
}

TEST(SlurmName, OfAMisspeltVariable) {
  EXPECT_EQ(whole("slurm-name", script(on_node("scontrol show hostnames $SLURM_JOB_MODELIST\n"))),
            (Texts{"Slurm sets no variable SLURM_JOB_MODELIST", "bash takes it as empty",
                   "SLURM_JOB_NODELIST", "sbatch(1), OUTPUT ENVIRONMENT VARIABLES"}));
  for (const std::string text :
       {"echo $SLURM_JOB_NODELIST $SLURM_TMPDIR\n", "SLURM_NTASK=2\necho $SLURM_NTASK\n",
        "echo ${SLURM_NTASK:-2}\n", "echo '$SLURM_NTASK'\n", "echo $SLURM_ANYTHING_ELSE\n"})
    EXPECT_EQ(found_on_node("slurm-name", text), Texts{}) << text;
}

TEST(NoTime, OfAJobThatWorks) {
  EXPECT_EQ(
      whole("no-time", script("#!/bin/bash\n#SBATCH -N 1\npython a.py\n")),
      (Texts{"the job requests no time limit",
             "it gets the partition's default: a short one ends the run early, without a warning; with a "
             "long one the job starts later, as backfill finds no gap for it",
             "#SBATCH --time=HH:MM:SS", "sbatch(1), --time; slurm.conf(5), DefaultTime"}));
  for (const std::string text :
       {"#!/bin/bash\n#SBATCH -N 1 -t 10\npython a.py\n", "#!/bin/bash\n#SBATCH --time=1:0:0\npython a.py\n",
        "#!/bin/bash\n#SBATCH -N 1\nls\n", "#!/bin/bash\npython a.py\n"})
    EXPECT_EQ(found("no-time", script(text)), Texts{}) << text;
}

TEST(InstallsInJob, IntoTheEnvironmentOfOtherJobs) {
  EXPECT_EQ(whole("installs-in-job", script(on_node("pip install -q trl\npython a.py\n"))),
            (Texts{"the job changes the environment that it runs in",
                   "other jobs with this environment import half-installed packages, two that start at once "
                   "break it, and the run depends on the day it started",
                   "install before you submit, or into a venv of this job ($TMPDIR)",
                   "pip documentation, pip install"}));
  for (const std::string line : {"python -m pip install x", "uv pip install x", "conda install -y x"})
    EXPECT_EQ(found_on_node("installs-in-job", line + "\n").size(), 1U) << line;
  for (const std::string fine : {"pip install --target=/tmp/x x\n", "pip list\n",
                                 "python -m venv v\n. v/bin/activate\npip install x\n",
                                 "srun pip install x\n", "uv pip list\n", "python -m pytest pip\n"})
    EXPECT_EQ(found_on_node("installs-in-job", fine), Texts{}) << fine;
  EXPECT_EQ(found("installs-in-job", script("pip install x\n")), Texts{});
}

}  // namespace
}  // namespace nlaunch::lint
