#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(ContainerLeft, DockerStartsItOutsideOfTheJob) {
  EXPECT_EQ(
      whole("container-left", script(on_node("docker run --rm --gpus all img python a.py\n"))),
      (Texts{"the end of the job may leave this container running",
             "dockerd starts it, outside of the job: what Slurm kills is docker's client, and the container "
             "goes on and holds the GPUs that the next job gets",
             "docker run --name job-$SLURM_JOB_ID …, and trap 'docker rm -f job-$SLURM_JOB_ID' EXIT",
             "Docker documentation, dockerd; slurm.conf(5), ProctrackType"}));
  EXPECT_EQ(found_on_node("container-left", "sudo docker run -d img python a.py\n").size(), 1U);
  for (const std::string fine :
       {"docker run --name a img python a.py\ntrap 'docker rm -f a' EXIT\n", "podman run img python a.py\n",
        "docker ps\n", "docker run --rm alpine echo hi\n",
        "stop() { docker rm -f a; }\ntrap stop EXIT\ndocker run --gpus all img python a.py\n",
        "apptainer exec a.sif python a.py\n"})
    EXPECT_EQ(found_on_node("container-left", fine), Texts{}) << fine;
  EXPECT_EQ(found_on_node("container-left", "srun docker run --gpus all img python a.py\n").size(), 1U);
  EXPECT_EQ(found("container-left", script("docker run --gpus all img python a.py\n")), Texts{});
}

TEST(ContainerName, OneOfAllJobs) {
  EXPECT_EQ(
      whole("container-name", script(on_node("docker run --name vllm img vllm serve m\n"))),
      (Texts{"the name of the container is the same in each job: vllm",
             "while one of that name is left, from another job or an earlier run, docker refuses to start",
             "--name vllm-$SLURM_JOB_ID", "Docker documentation, docker run --name"}));
  EXPECT_EQ(
      whole("container-name", script(on_node("docker rm -f a\ndocker run --name=a img python b.py\n")))[1],
      "a second job on the node removes the container of the first");
  for (const std::string fine :
       {"docker run --name a-$SLURM_JOB_ID img python b.py\n", "docker run img python b.py --name a\n",
        "docker run --name a-$(date +%s) img python b.py\n"})
    EXPECT_EQ(found_on_node("container-name", fine), Texts{}) << fine;
}

TEST(ContainerName, OutsideOfAJobItIsLeftFromTheLastRun) {
  EXPECT_EQ(found("container-name", script("docker run -d --name vllm img vllm serve m\n")),
            Texts{"note job.sh:1:1 the name of the container is the same in each run: vllm"});
  for (const std::string fine :
       {"docker run --rm --name a img python b.py\n", "docker rm -f a\ndocker run --name a img b\n"})
    EXPECT_EQ(found("container-name", script(fine)), Texts{}) << fine;
}

TEST(VolumePath, WithoutASlashAtItsBegin) {
  EXPECT_EQ(whole("volume-path", script("docker run --rm -v data/model:/model image python a.py\n")),
            (Texts{"docker refuses the volume data/model: it is no absolute path, and no name",
                   "a source without a / at its beginning is the name of a volume, which has no /",
                   "-v \"$PWD/data/model:…\"", "Docker documentation, docker run --volume"}));
  for (const std::string volume : {"/data:/data", "./data/x:/data", "cache:/cache", "/anonymous"})
    EXPECT_EQ(found("volume-path", script("docker run -v " + volume + " image python a.py\n")), Texts{})
        << volume;
}

TEST(Registry, AHashWhereASlashIsMeant) {
  const std::string begin = "#!/bin/bash\n#SBATCH -N 1\nsrun --container-image=";
  EXPECT_EQ(whole("registry", script(begin + "'vllm#vllm-openai:latest' python a.py\n")),
            (Texts{"pyxis takes vllm for the host of a registry",
                   "the image is not found. In REGISTRY#IMAGE, # stands behind a host",
                   "vllm/…, with a slash", "enroot, doc/cmd/import.md"}));
  for (const std::string fine : {"nvcr.io#nvidia/pytorch:24.01 a\n", "'docker://nvcr.io#nvidia/a' a\n",
                                 "vllm/vllm-openai a\n", "/images/a#b.sqsh a\n", "localhost#a a\n"})
    EXPECT_EQ(found("registry", script(begin + fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint
