"""The test cluster itself: that it is a Slurm to test with, and that nothing stays behind."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cluster import CANNOT, HERE, SITE, Cluster

SOURCE = HERE.parents[1]
NLAUNCH = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build")) / "bin" / "nlaunch"
USAGE = "usage: tests/cluster/up.sh [--hosts] N G   (1 to 128 nodes, 0 to 16 GPUs on each)\n"

# Each node listens, and connects to all by name: "node0 10.1.2.10 reached node0 node1 ...".
REACH = r"""
import os, socket, time
def reach(name):
    for _ in range(200):
        try:
            with socket.create_connection((name, 7777), timeout=5) as peer:
                return peer.makefile().readline()
        except OSError:
            time.sleep(0.05)
    return f"no {name}"
server = socket.create_server(("", 7777))
names = [f"node{k}" for k in range(int(os.environ["SLURM_NNODES"]))]
if os.fork() == 0:
    for _ in names:
        peer = server.accept()[0]
        peer.sendall(socket.gethostname().encode())
        peer.close()
    os._exit(0)
print(socket.gethostname(), socket.gethostbyname(socket.gethostname()), "reached", *map(reach, names))
os.wait()
"""


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def machines(folder):
    """The processes of a cluster in a folder: those that were started for it, and all below them."""
    parents, found = {}, set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text()
            arguments = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "\nState:\tZ" in status:
            continue
        parents[int(process.name)] = int(re.search(r"^PPid:\t(\d+)", status, re.M)[1])
        if any(argument.endswith(f"@{folder}") for argument in arguments):
            found.add(int(process.name))
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class ClusterTest(unittest.TestCase):
    maxDiff = None

    def up(self, *arguments, **options):
        cluster = Cluster(*arguments, **options)
        cluster.up()
        self.addCleanup(cluster.down)
        return cluster

    def ok(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Slurm(ClusterTest):
    """Four nodes with four GPUs, which all tests here use."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(4, 4)
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def submit(self, *arguments):
        return self.ok(self.cluster.run("sbatch", "--parsable", "-o", self.folder / "%j.out", *arguments)).strip()

    def output(self, job):
        try:
            return (self.folder / f"{job}.out").read_text()
        except FileNotFoundError:
            return ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nlaunch-cluster-test-")
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(folder.cleanup)
        self.addCleanup(self.cluster.end_all_jobs)

    def test_every_node_has_its_gpus(self):
        said = self.ok(self.cluster.run("srun", "-N4", "--gpus-per-node=4", "bash", "-c",
                                        "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $(hostname)"))
        name = os.uname().nodename
        self.assertEqual(sorted(said.splitlines()), [f"node{k} 0,1,2,3 {name}" for k in range(4)])

    def test_a_node_has_room_for_more_processes_than_the_machine_has_cores(self):
        said = self.ok(self.cluster.run("srun", "-N1", "-n16", "bash", "-c", "echo $SLURMD_NODENAME")).splitlines()
        self.assertEqual((len(said), len(set(said))), (16, 1))

    def test_steps_overlap_in_an_allocation(self):
        inside = ("srun -n2 bash -c 'sleep 2; echo slept' & until squeue -hs -o %i | grep -q '\\.0$'; do sleep 0.1; done; "
                  "srun --overlap bash -c 'echo $SLURMD_NODENAME' | sort; scontrol show hostnames; wait")
        said = self.ok(self.cluster.run("salloc", "-w", "node[0-1]", "bash", "-c", inside))
        self.assertEqual(said, "node0\nnode1\nnode0\nnode1\nslept\nslept\n")

    def test_jobs_wait_for_others(self):
        first = self.submit("-N4", "--exclusive", "-t5", "--wrap", "sleep 4; echo first")
        second = self.submit("-N4", "--exclusive", "-t1", "--wrap", "echo second")
        third = self.submit("-N1", "-d", f"afterok:{second}", "--wrap", "echo third")

        def expected(job):
            return self.ok(self.cluster.run("squeue", "--start", "-h", "-j", job, "-o", "%S %r")).strip()
        self.assertTrue(wait_until(lambda: re.fullmatch(r"\d{4}-\S+ Resources", expected(second)), 4), expected(second))
        self.assertEqual(expected(third), "N/A Dependency")
        self.assertIn("JobState=RUNNING", self.ok(self.cluster.run("scontrol", "show", "job", first)))
        self.assertTrue(wait_until(lambda: self.output(third)))
        self.assertEqual([self.output(job) for job in (first, second, third)], ["first\n", "second\n", "third\n"])

    def test_a_job_is_requeued_within_seconds(self):
        job = self.submit("-N1", "--requeue", "--open-mode=append", "--wrap", "echo start ${SLURM_RESTART_COUNT:-0}; sleep 200")
        self.assertTrue(wait_until(lambda: self.output(job) == "start 0\n"))
        self.ok(self.cluster.run("scontrol", "requeue", job))
        self.assertTrue(wait_until(lambda: self.output(job).endswith("start 1\n")), self.output(job))

    def test_the_short_partition_has_limits(self):
        for limit, reason in (("-N3", "PartitionNodeLimit"), ("-t11", "PartitionTimeLimit")):
            job = self.submit("-p", "short", limit, "--wrap", "true")

            def state():
                return self.ok(self.cluster.run("squeue", "-h", "-j", job, "-o", "%T %r")).strip()
            self.assertTrue(wait_until(lambda: state() == f"PENDING {reason}"), state())

    def test_processes_are_those_of_jobs(self):
        step = self.cluster.start("srun", "-N2", "-w", "node[1-2]", "bash", "-c", "env -i setsid sleep 30 & wait")
        self.addCleanup(step.communicate)
        self.addCleanup(step.terminate)
        self.assertTrue(wait_until(lambda: sorted(self.cluster.processes().values()) == ["bash", "bash", "sleep", "sleep"]))
        self.assertEqual(self.cluster.processes(0), {})
        self.assertEqual({**self.cluster.processes(1), **self.cluster.processes(2)}, self.cluster.processes())

    def test_a_second_cluster_knows_nothing_of_the_first(self):
        other = self.up(2, 0)
        job = self.submit("-N4", "--wrap", "sleep 30")
        self.assertTrue(wait_until(lambda: self.cluster.processes()))
        self.assertEqual(self.ok(other.run("squeue", "-h")), "")
        self.assertEqual(self.ok(other.run("sinfo", "-h", "-p", "main", "-o", "%N")), "node[0-1]\n")
        self.assertEqual(other.processes(), {})
        other.run(HERE / "down.sh")
        self.assertEqual(self.ok(self.cluster.run("squeue", "-h", "-j", job, "-o", "%T")), "RUNNING\n")

    def test_up_leaves_alone_what_is_there(self):
        done = self.cluster.run(HERE / "up.sh", 1, 0)
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"A cluster is up in {self.cluster.folder}. Take it down first: tests/cluster/down.sh\n"))
        (self.folder / "thesis.tex").touch()
        for script, status, said in (
                ("up.sh 1 0", 1, f"{self.folder} has other things in it: set NLAUNCH_CLUSTER to a new or an empty folder.\n"),
                ("down.sh", 0, "")):
            done = self.cluster.run("bash", "-c", HERE / script, env={"NLAUNCH_CLUSTER": str(self.folder)})
            self.assertEqual((done.returncode, done.stderr), (status, said))
        self.assertTrue((self.folder / "thesis.tex").exists())

    def test_env_sh(self):
        script = f"set -eu; . {HERE}/env.sh; sinfo -h -p main -o %D"
        env = {"PATH": os.environ["PATH"], "NLAUNCH_CLUSTER": str(self.cluster.folder)}
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env)
        self.assertEqual(self.ok(done), "4\n")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**env, "NLAUNCH_CLUSTER": "/nowhere"})
        self.assertEqual((done.returncode, done.stderr), (1, "No cluster is up in /nowhere: tests/cluster/up.sh 4 4\n"))

    def test_the_site_profile_fits(self):
        if not NLAUNCH.exists():
            self.skipTest(f"{NLAUNCH} is not built")
        plan = self.cluster.run(NLAUNCH, "plan", SOURCE / "configs/quickstart.yaml", "--site", SITE, "--nodes", 4)
        self.assertIn("quickstart on test-cluster (tests/cluster/site.yaml): 4 nodes\n",
                      self.ok(plan).replace(f"{SOURCE}/", ""))


class Nodes(ClusterTest):
    def dies_and_comes_back(self, hosts):
        cluster = self.up(2, 1, hosts=hosts, conf="SlurmdTimeout=5\nMessageTimeout=2\n")
        step = cluster.start("srun", "-N2", "--gpus-per-node=1", "sleep", "60")
        self.assertTrue(wait_until(lambda: len(cluster.processes()) == 2))
        cluster.kill_node(1)
        self.assertEqual((len(cluster.processes(0)), cluster.processes(1)), (1, {}))
        self.assertIn("Node failure on node1", step.communicate(timeout=60)[1])
        self.assertNotEqual(step.returncode, 0)
        self.assertEqual(cluster.state(1), "down*")
        cluster.revive_node(1)
        said = self.ok(cluster.run("srun", "-N2", "--gpus-per-node=1", "bash", "-c", "echo $SLURMD_NODENAME"))
        self.assertEqual(sorted(said.splitlines()), ["node0", "node1"])

    def test_nodes_die_and_come_back(self):
        # Slurm takes ten seconds to notice: both kinds of nodes at once.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for kind in [pool.submit(self.dies_and_comes_back, hosts) for hosts in (False, True)]:
                kind.result()

    def test_hosts_have_names_and_addresses_and_reach_each_other(self):
        cluster = self.up(4, 4, hosts=True)
        said = self.ok(cluster.run("srun", "-N4", "/usr/bin/python3", "-c", REACH))
        lines = sorted(said.splitlines())
        network = re.search(r"10\.\d+\.\d+\.", lines[0])[0]
        self.assertEqual(lines, [f"node{k} {network}{k + 10} reached node0 node1 node2 node3" for k in range(4)])
        self.assertEqual(self.ok(cluster.run("salloc", "-N2", "srun", "-N1", "--overlap", "hostname")), "node0\n")

    def test_options_for_slurm(self):
        cluster = self.up(1, 0, conf="KillWait=11\nPartitionName=extra Nodes=ALL\n")
        self.assertRegex(self.ok(cluster.run("scontrol", "show", "config")), r"\nKillWait +=* 11 sec\n")
        self.assertEqual(self.ok(cluster.run("sinfo", "-ho", "%P")), "main*\nshort\nextra\n")


class Down(ClusterTest):
    def test_nothing_stays_behind(self):
        for hosts in (False, True):
            cluster = self.up(2, 1, hosts=hosts)
            self.ok(cluster.run("srun", "-N2", "bash", "-c", "env -i setsid sleep 300 </dev/null >/dev/null 2>&1 & disown; sleep 0.2"))
            self.ok(cluster.run("sbatch", "-N2", "-o/dev/null", "--wrap", "srun sleep 300"))
            self.assertTrue(wait_until(lambda: len(cluster.processes()) >= 3))
            before = machines(cluster.folder)
            uplink = re.search("uplink=(.*)", (cluster.folder / "cluster.conf").read_text())[1]
            self.assertEqual(uplink in os.listdir("/sys/class/net"), hosts)
            self.assertEqual(self.ok(cluster.run(HERE / "down.sh")), "")
            self.assertEqual((machines(cluster.folder), cluster.folder.exists()), (set(), False))
            self.assertEqual([pid for pid in before if running(pid)], [])
            self.assertNotIn(uplink, os.listdir("/sys/class/net"))
            self.ok(cluster.run(HERE / "down.sh"))

    def test_of_a_cluster_that_lost_its_daemons_nothing_stays(self):
        cluster = self.up(2, 0)
        self.ok(cluster.run("sbatch", "-N2", "-o/dev/null", "--wrap", "srun sleep 300"))
        self.assertTrue(wait_until(lambda: len(cluster.processes()) >= 3))
        for pid in machines(cluster.folder):
            if running(pid) in ("slurmctld", "munged", "slurmd"):
                os.kill(pid, signal.SIGKILL)
        self.ok(cluster.run(HERE / "down.sh"))
        self.assertEqual((machines(cluster.folder), cluster.folder.exists()), (set(), False))

    def test_what_does_not_come_up_says_why_and_leaves_nothing(self):
        # Only slurmctld wants this folder: with a mistake that slurmd finds too, either may be the first to give up.
        cluster = Cluster(1, 0, conf="StateSaveLocation=/proc/nowhere\n")
        with self.assertRaises(RuntimeError) as failed:
            cluster.up()
        self.assertTrue(str(failed.exception).startswith("The cluster did not come up. What its daemons said last:\n"))
        self.assertIn("\nslurmctld: fatal: mkdir(/proc/nowhere): No such file or directory\n", str(failed.exception))
        self.assertEqual((machines(cluster.folder), cluster.folder.exists()), (set(), False))

    def test_a_cluster_goes_with_the_process_that_brought_it_up(self):
        script = "from cluster import Cluster; c = Cluster(1, 0); c.up(); print(c.folder, flush=True); input()"
        with subprocess.Popen([sys.executable, "-c", script], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as owner:
            folder = owner.stdout.readline().strip()
            owner.kill()
            if not folder:
                self.skipTest(owner.stderr.read().strip().splitlines()[-1])
        self.assertTrue(wait_until(lambda: not machines(folder) and not pathlib.Path(folder).exists()))


class Refusals(ClusterTest):
    def up_sh(self, *arguments, script=HERE / "up.sh", **options):
        done = subprocess.run([script, *arguments], capture_output=True, text=True, **options)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_wrong_arguments(self):
        for arguments, said in (
                ([], "up.sh takes the number of nodes and the number of GPUs on each, got 0 arguments."),
                (["4"], "up.sh takes the number of nodes and the number of GPUs on each, got 1 arguments."),
                (["0", "4"], "'0' nodes?"), (["129", "4"], "'129' nodes?"), (["08", "4"], "'08' nodes?"),
                (["4", "17"], "'17' GPUs on each node?"), (["--hosts", "2", "-1"], "'-1' GPUs on each node?")):
            self.assertEqual(self.up_sh(*arguments), (2, f"{said}\n{USAGE}"))

    @unittest.skipUnless(os.geteuid() == 0, "only root gets that far")
    def test_without_slurm(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in ("bash", "dirname", "realpath", "ip", "unshare", "python3"):
                os.symlink(shutil.which(program), f"{folder}/{program}")
            self.assertEqual(self.up_sh("1", "0", env={"PATH": folder}), (
                CANNOT, "The test cluster needs munged slurmctld slurmd srun:\n"
                        "  apt-get install -y --no-install-recommends munge slurmctld slurmd slurm-client iproute2 util-linux"
                        " python3-minimal\n"))

    def test_hosts_where_namespaces_are_not_permitted(self):
        with Cluster(1, 0):
            pass  # or the reason why not
        setpriv = ["setpriv", "--bounding-set=-sys_admin,-net_admin", HERE / "up.sh"]
        done = subprocess.run([*setpriv, "--hosts", "1", "0"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (
            CANNOT, "--hosts needs namespaces, which are not permitted here (a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN).\n"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_without_root(self):
        with tempfile.TemporaryDirectory() as folder:  # of which that user may read, unlike a checkout below root's home
            os.chmod(folder, 0o755)
            for name in ("up.sh", "lib.sh"):
                shutil.copy(HERE / name, folder)
            self.assertEqual(self.up_sh("1", "0", script=f"{folder}/up.sh", user=65534, group=65534, extra_groups=[], cwd=folder), (
                CANNOT, "The test cluster needs root: slurmd runs jobs as their users, and GPUs are device files.\n"))


def running(pid):
    """The name of a process, or nothing if it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""
    return "" if "\nState:\tZ" in status else re.match(r"Name:\t(.*)", status)[1]


if __name__ == "__main__":
    unittest.main()
