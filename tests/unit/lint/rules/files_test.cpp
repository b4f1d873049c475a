#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

/// What is said of NCCL_DEBUG_FILE where no folder is there but /tmp.
Texts said_of_file(const std::string& path, LintInput input = {}) {
  input.environments = {environment("", {set("NCCL_DEBUG_FILE", path)})};
  input.folder_exists = [](const std::string& folder) { return folder == "/tmp"; };
  return found("debug-folder", input);
}

Texts missing(const std::string& folder) {
  return {"warning a.env:1:1 the directory " + folder + " of NCCL_DEBUG_FILE does not exist"};
}

TEST(DebugFolder, AFolderThatIsNotThereIsTold) {
  EXPECT_EQ(said_of_file("/a/b/nccl.%h.log"), missing("/a/b"));
  EXPECT_EQ(said_of_file("logs/x"), missing("logs"));
  EXPECT_EQ(said_of_file("/x.log"), missing("/"));
  EXPECT_EQ(said_of_file("/%h.log"), missing("/"));
  EXPECT_EQ(said_of_file("/tmp/x.log"), Texts{});
}

TEST(DebugFolder, WhatIsNotKnownIsNotTold) {
  EXPECT_EQ(said_of_file("x.log"), Texts{});
  EXPECT_EQ(said_of_file("${run.dir}/x.log"), Texts{});
  EXPECT_EQ(said_of_file("/a/%h/x.log"), Texts{});
  EXPECT_EQ(found("debug-folder", scene({set("NCCL_DEBUG_FILE", "/a/x")})), Texts{});
}

TEST(DebugFolder, WhatTheScriptMakesWillBeThere) {
  EXPECT_EQ(said_of_file("/a/x", script("mkdir -p /a\n")), Texts{});
  EXPECT_EQ(said_of_file("/a/x", script("true\nmkdir -p /a/b\nls\n")), Texts{});
  EXPECT_EQ(said_of_file("/a/x", script("LOGS=/a\nmkdir -p $LOGS\n")), Texts{});
  EXPECT_EQ(said_of_file("/a/x", script("mkdir -p /ab\n")), missing("/a"));
  EXPECT_EQ(said_of_file("/a/x", script("ls /a\n")), missing("/a"));
  EXPECT_EQ(said_of_file("/a/x", script("true\n")), missing("/a"));
}

TEST(DebugFolder, WhatComesOfItIsTold) {
  auto input = scene({set("NCCL_DEBUG_FILE", "/a/x")});
  input.folder_exists = [](const std::string&) { return false; };
  EXPECT_EQ(whole("debug-folder", input),
            (Texts{"the directory /a of NCCL_DEBUG_FILE does not exist",
                   "NCCL does not create it and silently writes to standard output instead",
                   "run `mkdir -p /a` before the programs start", "NCCL src/debug.cc"}));
}

LintInput caches(std::vector<Setting> settings) {
  auto input = scene(std::move(settings));
  input.shared_file_system = [](const std::string& path) { return path.starts_with("/home") ? "NFS" : ""; };
  return input;
}

TEST(SharedCache, EachCacheIsLookedAt) {
  for (const std::string name : {"TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "RAY_TMPDIR",
                                 "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR"}) {
    EXPECT_EQ(found("shared-cache", caches({set(name, "/home/me/x")})),
              Texts{"warning a.env:1:1 " + name + " is on a shared file system (NFS)"});
    EXPECT_EQ(found("shared-cache", caches({set(name, "/tmp/x"), open(name)})), Texts{});
    EXPECT_EQ(found("shared-cache", scene({set(name, "/home/me/x")})), Texts{});
  }
  EXPECT_EQ(found("shared-cache", caches({set("HF_HOME", "/home/me/x")})), Texts{});
}

TEST(SharedCache, AFolderThatIsNotKnownIsOnNoFileSystem) {
  auto input = scene({open("RAY_TMPDIR")});
  input.shared_file_system = [](const std::string&) { return "NFS"; };
  EXPECT_EQ(found("shared-cache", input), Texts{});
}

TEST(SharedCache, RayHasAFolderOfItsOwn) {
  const auto of = [](const char* name) { return whole("shared-cache", caches({set(name, "/home/me/x")})); };
  EXPECT_EQ(of("RAY_TMPDIR").at(1), "Ray's sockets do not work there");
  EXPECT_EQ(of("RAY_TMPDIR").at(2),
            "use a directory on the node's local disk: /tmp/$USER-$SLURM_JOB_ID (nlaunch: ${node.scratch})");
  EXPECT_EQ(of("TRITON_CACHE_DIR").at(1), "processes on different nodes see each other's half-written files");
  EXPECT_EQ(of("TRITON_CACHE_DIR").at(2),
            "use a directory on the node's local disk: /tmp/$USER-$SLURM_JOB_ID (nlaunch: ${node.cache})");
}

TEST(NcclConf, WhatItAddsAndSetsAgainIsTold) {
  LintInput input;
  input.environments = {environment("learner", {set("NCCL_A", "1"), unset("NCCL_B")}),
                        environment("engine", {local(set("NCCL_A", "1")), set("NCCL_B", "2")})};
  input.conf = {set("NCCL_A", "1"), set("NCCL_B", "1")};
  const auto file = a_file("/etc/nccl.conf");
  input.conf[0].span = {file, 1, 1, 6};
  input.conf[1].span = {file, 2, 1, 6};
  EXPECT_EQ(
      found("nccl-conf", input),
      (Texts{
          "warning /etc/nccl.conf:1:1 (engine) /etc/nccl.conf sets NCCL_A, which nothing here asks for",
          "warning learner.env:2:1 (learner) NCCL_B is unset here, but /etc/nccl.conf:2:1 sets it again"}));
}

TEST(SharedCache, OfAllUsersOfTheNode) {
  EXPECT_EQ(whole("shared-cache", scene({set("TRITON_CACHE_DIR", "/tmp")})),
            (Texts{"TRITON_CACHE_DIR=/tmp is the same for all users and jobs of the node",
                   "they write into one directory: a file of another user cannot be replaced, and one of "
                   "another job may be used",
                   "/tmp/$USER-$SLURM_JOB_ID", "triton-lang/triton issues; Ray docs, --temp-dir"}));
  EXPECT_EQ(found("shared-cache", scene({set("RAY_TMPDIR", "/tmp"), set("TRITON_CACHE_DIR", "/tmp/me")})),
            Texts{});
}

TEST(SharedFile, WithTheHostsOfTheJob) {
  const auto job = [](const std::string& file) {
    return found("shared-file", script("#!/bin/bash\n#SBATCH -N 2\nscontrol show hostnames > " + file +
                                       "\nmpirun --hostfile " + file + " python train.py\n"));
  };
  const auto told = job("hosts.txt");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].ends_with("hosts.txt names the hosts of this job, and each job writes the same file"))
      << told[0];
  for (const std::string file : {"hosts.$SLURM_JOB_ID", "/dev/shm/hosts"})
    EXPECT_EQ(job(file), Texts{}) << file;
}

TEST(SharedFile, WithValuesOfTheJobOrRemovedAtItsEnd) {
  const auto job = [](const std::string& text) {
    return found("shared-file", script("#!/bin/bash\n#SBATCH -N 1\n" + text));
  };
  EXPECT_EQ(job("echo \"port: $((20000 + SLURM_JOB_ID % 1000))\" > /data/c.yaml\npython a.py --config "
                "/data/c.yaml\n"),
            Texts{"warning job.sh:4:1 /data/c.yaml is written anew by each job, with values of that job"});
  const std::string wrapper =
      "printf '#!/bin/bash\\nexec \"$@\"\\n' > /data/sel; chmod +x /data/sel\nsrun /data/sel a.x\n";
  EXPECT_EQ(job(wrapper + "rm -f /data/sel\n"),
            Texts{"warning job.sh:5:1 this removes /data/sel, which other jobs with this script use, too"});
  for (const auto& fine :
       {wrapper, std::string("rm -f /data/c\necho a: 1 > /data/c\npython a.py --config /data/c\n"),
        std::string("F=/data/$SLURM_JOB_ID.yaml\necho $SLURM_JOB_ID > $F\npython a.py --config $F\nrm $F\n"),
        std::string("mkdir -p /data/out\nenv > /data/out/env.txt\npython a.py --output_dir /data/out\n"),
        std::string("echo run $SLURM_JOB_ID >> /data/runs.txt\npython a.py --history /data/runs.txt\n"),
        std::string("F=$(mktemp /data/XXXXXX)\necho $SLURM_JOB_ID > $F\npython a.py --config $F\nrm $F\n")})
    EXPECT_EQ(job(fine), Texts{}) << fine;
}

TEST(LogOverwritten, ByTheNextRun) {
  EXPECT_EQ(
      whole("log-overwritten", script("python a.py > /data/a.log 2>&1\npython b.py | tee /data/b.log\n")),
      (Texts{"the next run of this script overwrites /data/a.log and /data/b.log",
             "what a run has printed is lost when the script is started again", "NAME-$(date +%F-%H%M%S).log",
             "bash(1), REDIRECTION; tee(1)"}));
  for (const std::string fine :
       {"python a.py >> /data/a.log\n", "python a.py | tee -a /data/a.log\n",
        "python a.py > /dev/null 2>&1\n", "python a.py > /data/$(date +%F).log\n",
        "python a.py > /data/$$.log\n", "python a.py > /tmp/a.log\n",
        "exec >> /data/a.log 2>&1\npython a.py\n", "{ python a.py; python b.py; } >> /data/a.log\n",
        "cd /data/$SLURM_JOB_ID$$\npython a.py | tee a.log\n", "python a.py > /data/$RANDOM.log\n",
        "python make.py > /data/c.yaml\npython a.py --config /data/c.yaml\n",
        "printf -v D '%(%s)T'\npython a.py > /data/$D.log\n", "python a.py > /data/$EPOCHSECONDS.log\n",
        "#SBATCH -N 1\npython a.py > /data/$SLURM_JOB_ID.log\n"})
    EXPECT_EQ(found("log-overwritten", script(fine)), Texts{}) << fine;
}

TEST(LogOverwritten, BelowTheHomeOfTheUser) {
  EXPECT_EQ(found("log-overwritten", script("python a.py > ~/a.log\n")),
            Texts{"note job.sh:1:1 the next run of this script overwrites ~/a.log"});
}

TEST(LogOverwritten, ByOtherTasksOfAnArray) {
  const std::string array = "#!/bin/bash\n#SBATCH --array=0-3\n#SBATCH --output=%A_%a.out\n";
  EXPECT_EQ(found("log-overwritten", script(array + "python a.py > /data/a.log\n")),
            Texts{"note job.sh:4:1 all tasks of the array write /data/a.log"});
  EXPECT_EQ(found("log-overwritten", script(array + "python a.py > /data/$SLURM_ARRAY_TASK_ID.log\n")),
            Texts{});
  for (const std::string ids : {"3", "0-9%1"})
    EXPECT_EQ(found("log-overwritten", script("#!/bin/bash\n#SBATCH --array=" + ids +
                                              "\n#SBATCH --output=%A_%a.out\npython a.py > /data/a.log\n")),
              Texts{"note job.sh:4:1 the next run of this script overwrites /data/a.log"})
        << ids;
}

TEST(LogOverwritten, WithinARun) {
  EXPECT_EQ(found("log-overwritten", script("for i in 1 2; do\n  python a.py $i > /data/a.log\ndone\n")),
            Texts{"warning job.sh:2:3 each time it runs, this line overwrites /data/a.log"});
  EXPECT_EQ(
      found("log-overwritten", script("python a.py | tee /data/a.log\npython b.py | tee /data/a.log\n")),
      Texts{"warning job.sh:2:1 this overwrites /data/a.log, the output of line 1"});
  const std::string next = "the next run of this script overwrites";
  for (const std::string fine :
       {"for i in 1 2; do\n  python a.py $i\ndone > /data/a.log\n",
        "for i in 1 2; do\n  python a.py $i > /data/a.log\n  mv /data/a.log /data/$i.log\ndone\n",
        "for i in 1 2; do\n  mkdir -p /data/$i\n  (cd /data/$i && python a.py | tee a.log)\ndone\n",
        "for i in 1 2; do\n  python a.py > /data/t\n  python b.py < /data/t >> /data/all\ndone\n",
        "srun -n 2 python a.py > /data/a.log\n", "exec > /data/a.log\npython a.py\npython b.py\n"})
    for (const auto& one : found("log-overwritten", script(fine)))
      EXPECT_NE(one.find(next), std::string::npos) << fine << one;
}

TEST(SharedOutput, OfATraining) {
  EXPECT_EQ(whole("shared-output", script("torchrun --standalone train.py --output_dir ckpt/sft\n")),
            (Texts{"the next run of this script writes into ckpt/sft too",
                   "it overwrites what this one has saved, and two runs at once mix their checkpoints",
                   "--output_dir ckpt/sft-$(date +%F-%H%M%S)", "sbatch(1), SLURM_JOB_ID"}));
  const auto job = [](const std::string& text) {
    return found("shared-output", script("#!/bin/bash\n#SBATCH --array=0-3\n" + text));
  };
  EXPECT_EQ(job("python train.py trainer.default_local_dir=ckpt/a\n"),
            Texts{"note job.sh:3:1 all tasks of the array write into ckpt/a"});
  for (const std::string fine :
       {"python train.py --output_dir ckpt/$SLURM_ARRAY_TASK_ID\n", "python eval.py --output_dir out\n",
        "python train.py --output_dir /tmp/a\n", "python train.py --output_dir ckpt --resume auto\n",
        "python train.py --output_dir ${OUT:-ckpt}\n",
        "OUT=ckpt/$(date +%s)\npython train.py --output_dir $OUT\n",
        "torchrun --standalone pretrain.py --save ckpt --load ckpt\n", "python train.py --save true\n",
        "python train.py --output_dir ckpt/$PBS_JOBID\n",
        "python train.py --output_dir ckpt --overwrite_output_dir\n",
        ": \"${OUT:=ckpt/a}\"\npython train.py --output_dir $OUT\n"})
    EXPECT_EQ(job(fine), Texts{}) << fine;
}

TEST(LogOverwritten, WithinATaskAndByOthers) {
  EXPECT_EQ(found("log-overwritten",
                  script("#!/bin/bash\n#SBATCH --array=0-3\n#SBATCH --output=%A_%a.out\nfor i in 1 2; do\n"
                         "  python a.py $i > /data/a.log\ndone\n")),
            (Texts{"warning job.sh:5:3 each time it runs, this line overwrites /data/a.log",
                   "note job.sh:5:3 all tasks of the array write /data/a.log"}));
}

TEST(ResultsEmptied, ByTheNextRun) {
  const std::string begin = "OUT=results\nCSV=\"${OUT}/scores.csv\"\n";
  EXPECT_EQ(whole("results-emptied",
                  script(begin + "echo step,score > \"$CSV\"\npython a.py\necho \"1,2\" >> $CSV\n")),
            (Texts{"the next run of this script empties $CSV, to which line 5 appends",
                   "the results of the run before are lost, and two runs at once mix theirs",
                   "a name with $(date +%F-%H%M%S), or write the first line only if the file is not there",
                   "bash(1), REDIRECTION"}));
  EXPECT_EQ(
      found("results-emptied",
            script(begin +
                   "echo a > ${CSV}\npython - <<EOF\nwith open(\"$CSV\", \"a\") as f: f.write(\"1\")\nEOF\n"))
          .size(),
      1U);
  for (const auto& fine :
       {begin + "echo a > $CSV\npython a.py\n", begin + "[ -f $CSV ] || echo a > $CSV\necho b >> $CSV\n",
        begin + "if [ ! -f $CSV ]; then\n  echo a > $CSV\nfi\necho b >> $CSV\n",
        std::string("cd runs/$1\necho a > scores.csv\necho b >> scores.csv\n"),
        std::string("CSV=scores-$(date +%s).csv\necho a > $CSV\necho b >> $CSV\n"),
        std::string("CSV=/tmp/scores.csv\necho a > $CSV\necho b >> $CSV\n"),
        std::string("for m in a b; do\n  CSV=$m.csv\n  echo a > $CSV\n  echo b >> $CSV\ndone\n"),
        std::string("echo a > run.sh\necho b >> run.sh\n")})
    EXPECT_EQ(found("results-emptied", script(fine)), Texts{}) << fine;
}

TEST(LocalLock, OfAJob) {
  const std::string job = "#!/bin/bash\n#SBATCH --gpus=1\n";
  EXPECT_EQ(
      whole("local-lock", script(job + "LOCK=/tmp/git.lock\nflock -w 60 \"$LOCK\" git commit -m a\n")),
      (Texts{"the lock /tmp/git.lock is on the disk of the node",
             "jobs on other nodes have a lock of their own, and change what they share at the same time",
             "a file on the shared file system that the lock protects", "flock(1)"}));
  EXPECT_EQ(found("local-lock", script(job + "exec 9>/tmp/setup.lock\nflock 9\npython a.py\n")).size(), 1U);
  EXPECT_EQ(found("local-lock", script(job + "flock $HOME/setup.lock python a.py\n")), Texts{});
  EXPECT_EQ(found("local-lock", script("flock /tmp/a.lock python a.py\n")), Texts{});
  EXPECT_EQ(found("local-lock",
                  script(job + "exec 9>/tmp/a.lock\nflock 9\n[ -d /tmp/data ] || tar xf /d.tar -C /tmp\n")),
            Texts{});
}

TEST(SharedOutput, NotOfWhatIsMadeOnlyIfItIsMissing) {
  const std::string job = "#!/bin/bash\n#SBATCH --gpus=1\n";
  const std::string make = "python make_training_data.py --output-dir /data/train\n";
  EXPECT_EQ(
      found("shared-output", script(job + "if [ ! -f /data/train/a.parquet ]; then\n  " + make + "fi\n")),
      Texts{});
  EXPECT_EQ(found("shared-output", script(job + make)).size(), 1U);
  EXPECT_EQ(found("shared-output", script(job + "python train.py --out /data/model\n")).size(), 1U);
}

TEST(ResultsRemoved, BehindTheRun) {
  EXPECT_EQ(whole("results-removed",
                  script("C=/data/ckpt\npython a.py --save $C --load $C | tee log\nrm -rf $C\n")),
            (Texts{"this removes what a.py of line 2 has written",
                   "nothing has copied it before: the results of the run are lost",
                   "remove it before the run, or leave this out", "rm(1)"}));
  for (const std::string fine :
       {"rm -rf /data/c\npython a.py --save /data/c\n",
        "python a.py --save /data/c\ncp -r /data/c /keep\nrm -rf /data/c\n",
        "python a.py --save /data/c\npython eval.py --model /data/c/last\nrm -rf /data/c\n",
        "python a.py --save /data/c\nrm -rf /data/c/cache\n",
        "python a.py --output_dir /tmp/x\nrm -rf /tmp/x\n"})
    EXPECT_EQ(found("results-removed", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint
