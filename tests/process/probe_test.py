"""nlaunch-probe as a program: what it prints, and how it behaves when something is missing."""
import contextlib
import json
import mmap
import os
import subprocess
import tempfile
import threading
import time
import unittest

BUILD = os.environ.get("NLAUNCH_BUILD", "build")
PROBE = os.path.join(BUILD, "bin", "nlaunch-probe")
GLOO = os.path.join(BUILD, "lib", "libnlaunch-gloo.so")


def libnccl():
    for path in (os.environ.get("NLAUNCH_TEST_LIBNCCL"), "/usr/local/cuda/lib/libnccl.so.2",
                 "/usr/lib/x86_64-linux-gnu/libnccl.so.2"):
        if path and os.path.exists(path):
            return path
    return None


def probe(*arguments, env=None):
    done = subprocess.run([PROBE, *arguments], capture_output=True, text=True, env=env, timeout=60, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done


def readable(pid):
    """Whether what this user's process has mapped can be seen; true of others' processes and of those that have ended."""
    try:
        if os.stat(f"/proc/{pid}").st_uid == os.getuid():
            with open(f"/proc/{pid}/maps", "rb") as file:
                file.read(1)
    except PermissionError:
        return False
    except OSError:
        pass
    return True


class Facts(unittest.TestCase):
    def test_of_this_machine(self):
        (facts,), done = probe("facts")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(facts["hostname"], os.uname().nodename)
        self.assertEqual(facts["arch"], os.uname().machine)
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            self.assertEqual(facts["host_id"], facts["hostname"] + "/" + file.read().strip())
        self.assertGreater(facts["limits"]["nofile"], 0)
        self.assertGreater(facts["limits"]["shm_size"], 0)
        self.assertIn("nproc", facts["limits"])
        self.assertIn("core", facts["limits"])
        self.assertIn(facts["limits"]["userfaultfd"], ("all", "user mode", "none"))

    def test_without_a_driver_nvml_is_a_result(self):
        (facts,), _ = probe("facts")
        if "nvml_error" not in facts:
            self.skipTest("this machine has NVML")
        self.assertEqual(facts["nvml_error"], "not found: looked for libnvidia-ml.so.1 in the loader's cache and system directories")
        self.assertEqual(facts["gpus"], [])

    def test_the_host_identity_is_what_nccl_takes(self):
        (facts,), _ = probe("facts", env={"NCCL_HOSTID": "box-7"})
        self.assertEqual((facts["host_id"], facts["host_id_source"]), ("box-7", "NCCL_HOSTID"))

    def test_libfabric_is_found_or_its_absence_is_a_result(self):
        (said,), done = probe("fabric")
        self.assertEqual((said["event"], done.returncode), ("fabric", 0))
        if "error" in said:
            self.assertEqual(said["error"], "not found: looked for libfabric.so.1 in the loader's cache and system directories")
        else:
            self.assertRegex(said["version"], r"^\d+\.\d+$")
            self.assertTrue(os.path.exists(said["path"]), said)

    def test_libfabrics_tcp_provider_for_real(self):
        (said,), _ = probe("fabric", "tcp")
        (version,), _ = probe("version")
        if "error" in said or version["libfabric"] is None:
            self.skipTest("no libfabric here, or none when this was built")
        self.assertEqual(said["provider"], "tcp")
        self.assertNotIn("provider_error", said)
        self.assertIn("lo", [domain["name"] for domain in said["domains"]])
        for domain in said["domains"]:
            self.assertTrue(domain["opened"], domain)
            self.assertTrue(domain["provider"].startswith("tcp"), domain)

    def test_a_provider_that_libfabric_does_not_have(self):
        (said,), done = probe("fabric", "cxi")
        if "error" in said or os.path.exists("/dev/cxi0"):
            self.skipTest("no libfabric here, or real Slingshot")
        self.assertEqual((said["domains"], said["provider_error"], done.returncode), ([], "No data available", 0))

    def test_version_names_what_was_built_in(self):
        for argument in ("version", "--version"):
            (version,), _ = probe(argument)
            self.assertEqual(set(version), {"event", "nlaunch", "cuda", "nccl_header", "gloo", "libfabric"})

    def test_usage(self):
        for arguments in ((), ("nonsense",), ("library",)):
            lines, done = probe(*arguments)
            self.assertEqual((lines, done.returncode), ([], 64))
            self.assertIn("nlaunch-probe library PATH", done.stderr)


class Folder(unittest.TestCase):
    def test_a_folder_is_written_to_and_nothing_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            (said,), _ = probe("folder", folder)
            self.assertEqual(os.listdir(folder), [])
        self.assertGreater(said["free"], 0)
        self.assertGreater(said["seconds"], 0)
        self.assertNotIn("error", said)

    def test_what_is_not_there(self):
        self.assertEqual(probe("folder", "/nowhere")[0], [{"event": "folder", "path": "/nowhere", "error": "No such file or directory"}])

    def test_what_nobody_can_write_to(self):
        (said,), _ = probe("folder", "/proc")
        self.assertEqual(said["error"], "cannot be written to: No such file or directory")
        self.assertFalse(said["read_only"])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_what_is_not_ours(self):
        (said,), _ = probe("folder", "/usr")
        self.assertEqual((said["error"], said["read_only"]), ("cannot be written to: Permission denied", True))


class Names(unittest.TestCase):
    def test_of_this_machine_and_others(self):
        (said,), _ = probe("names", "localhost", "127.0.0.1", "no-such-name.invalid")
        own, local, number, unknown = said["names"]
        self.assertEqual((own["name"], own["own"]), (os.uname().nodename, True))
        for one in (local, number):
            self.assertEqual((one["addresses"][0], one["interface"]), ("127.0.0.1", "lo"))
        self.assertEqual(unknown["addresses"], [])
        self.assertTrue(unknown["error"])


class Library(unittest.TestCase):
    def test_a_real_libnccl(self):
        path = libnccl()
        if not path:
            self.skipTest("no libnccl here (NLAUNCH_TEST_LIBNCCL names one)")
        (said,), done = probe("library", path)
        self.assertEqual(done.returncode, 0)
        info = os.stat(path)
        self.assertEqual(said["path"], os.path.realpath(path))
        self.assertEqual(said["inode"], info.st_ino)
        self.assertEqual(said["device"], f"{os.major(info.st_dev)}:{os.minor(info.st_dev)}")
        major, minor, patch = map(int, said["version"].split("."))
        self.assertEqual(said["code"], major * 10000 + minor * 100 + patch)

    def test_the_loaders_choice_follows_the_environment(self):
        path = libnccl()
        if not path:
            self.skipTest("no libnccl here (NLAUNCH_TEST_LIBNCCL names one)")
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(path, os.path.join(folder, "libnccl-probe-test.so.2"))
            (said,), _ = probe("find-library", "libnccl-probe-test.so.2", env={"LD_LIBRARY_PATH": folder})
            self.assertEqual(said["path"], os.path.realpath(path))
            (said,), _ = probe("find-library", "libnccl-probe-test.so.2", env={"LD_LIBRARY_PATH": "/nowhere"})
            self.assertEqual(said["error"], "not found: looked for libnccl-probe-test.so.2 in LD_LIBRARY_PATH "
                             "(/nowhere), the loader's cache and system directories")

    def test_what_is_no_nccl(self):
        self.assertEqual(probe("library", "/nowhere/libnccl.so.2")[0][0]["error"],
                         "not found: looked for /nowhere/libnccl.so.2")
        self.assertEqual(probe("library", "/etc/passwd")[0][0]["error"],
                         "cannot be loaded: /etc/passwd: invalid ELF header")
        error = probe("library", "libm.so.6")[0][0]["error"]
        self.assertRegex(error, r"^/.*/libm.so.6 is not NCCL: it has no ncclGetVersion$")


class Rank(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(GLOO):
            self.skipTest("built without Gloo")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.started = []

    def spec(self, ranks, join_ms=10000, device=-1, library=""):
        members = list(range(ranks))
        spec = {"folder": self.folder.name, "join_ms": join_ms, "op_ms": 10000,
                "ranks": [{"name": f"rank {i}", "device": device, "library": library} for i in members],
                "groups": [{"name": "node 0", "op": "all_reduce", "backend": "gloo", "members": members,
                            "sizes": [8, 1048576]},
                           {"name": "weight sync", "op": "broadcast", "backend": "gloo", "members": members,
                            "sizes": [8, 22118400]}]}
        path = os.path.join(self.folder.name, "spec.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump(spec, file)
        return path

    def start(self, spec, index):
        child = subprocess.Popen([PROBE, "rank", "--spec", spec, "--index", str(index)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, child)
        self.started.append(child)
        return child

    @staticmethod
    def stop(child):
        child.kill()
        child.wait()
        child.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()

    def go(self):
        """What each rank says to its end. What one tells the others is handed on, as nlaunch does it."""
        said = [[] for _ in self.started]
        lock = threading.Lock()

        def tell(child, line):
            with lock, contextlib.suppress(BrokenPipeError):  # it has given up
                child.stdin.write(line + "\n")
                child.stdin.flush()

        def listen(rank):
            for line in self.started[rank].stdout:
                event = json.loads(line)
                if event["event"] != "id":
                    said[rank].append(event)
                    continue
                for child in self.started:
                    if child is not self.started[rank]:
                        tell(child, f"id {event['key']} {event['id']}")

        for child in self.started:
            tell(child, "go")
        listeners = [threading.Thread(target=listen, args=(rank,)) for rank in range(len(self.started))]
        for listener in listeners:
            listener.start()
        for listener in listeners:
            listener.join()
        return said

    def test_all_ranks_find_every_element_right(self):
        spec = self.spec(3)
        for index in range(3):
            self.start(spec, index)
        for said in self.go():
            self.assertEqual([line["name"].split(" of ")[0] for line in said if line["event"] == "phase"],
                             ["wait for the other ranks", "join node 0", "all_reduce", "all_reduce", "join weight sync", "broadcast",
                              "broadcast"])
            self.assertEqual([line["event"] for line in said if line["event"] != "phase"],
                             ["identity", "joining", "joined", "result", "result", "joining", "joined", "result",
                              "result", "done"])
            for line in said:
                if line["event"] == "result":
                    self.assertEqual((line["wrong"], line["elements"]), (0, line["bytes"] // 4))
                    factor = 4 / 3 if line["op"] == "all_reduce" else 1
                    self.assertAlmostEqual(line["busbw"] * line["seconds"], factor * line["bytes"], delta=1)
        self.assertEqual([child.wait() for child in self.started], [0, 0, 0])

    def test_says_who_it_is_and_waits(self):
        child = self.start(self.spec(2), 1)
        identity = json.loads(child.stdout.readline())
        self.assertEqual((identity["event"], identity["rank"], identity["pid"]), ("identity", 1, child.pid))
        self.assertIsNone(identity["gpu"])
        time.sleep(0.2)
        self.assertIsNone(child.poll())
        child.stdin.close()
        self.assertEqual(child.wait(5), 1)

    def test_gives_up_at_the_deadline_when_a_rank_is_not_there(self):
        spec = self.spec(3, join_ms=700)
        begin = time.monotonic()
        for index in range(2):
            self.start(spec, index)
        for said in self.go():
            self.assertEqual(said[-1]["event"], "error")
            self.assertEqual((said[-1]["phase"], said[-1]["group"]), ("join", "node 0"))
        self.assertLess(time.monotonic() - begin, 3)
        self.assertTrue(all(child.wait() in (1, 3) for child in self.started))

    def test_without_a_driver_a_gpu_rank_says_so(self):
        (facts,), _ = probe("facts")
        if facts["gpus"]:
            self.skipTest("this machine has GPUs")
        child = self.start(self.spec(1, device=0, library=libnccl() or ""), 0)
        error = next(line for line in map(json.loads, child.stdout) if line["event"] != "phase")
        self.assertEqual((error["event"], error["phase"], error["kind"]), ("error", "identity", "unavailable"))
        self.assertRegex(error["text"], "CUDA")
        self.assertEqual(child.wait(5), 1)

    def test_a_bad_spec_is_an_error_line(self):
        child = self.start("/nowhere/spec.json", 0)
        self.assertEqual(json.loads(child.stdout.readline())["text"],
                         "cannot open '/nowhere/spec.json': No such file or directory")
        child = self.start(self.spec(2), 2)
        self.assertRegex(json.loads(child.stdout.readline())["text"], r"^--index 2: .*spec.json has 2 ranks$")


class Machine(unittest.TestCase):
    def test_the_kernel_log_is_read_or_the_reason_is_told(self):
        (said,), done = probe("kernel-log")
        self.assertEqual((said["event"], done.returncode), ("kernel-log", 0))
        if "source" in said:
            self.assertIn(said["source"], ("/dev/kmsg", "journalctl"))
            self.assertEqual([line for line in said["lines"] if line["age"] < 0], [])
        else:
            self.assertRegex(said.get("denied") or said["error"], r"^/dev/kmsg: ")

    def test_shared_memory_that_is_mapped_is_told_from_what_was_left(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, size in (("nccl-held", 8192), ("nccl-left", 4096), ("sem.other", 4096)):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(bytes(size))
            with open(os.path.join(folder, "nccl-held"), "r+b") as file, mmap.mmap(file.fileno(), 0):
                (said,), _ = probe("shared-memory", folder)
        held, left = said["files"]
        self.assertEqual([held["name"], left["name"], left["mine"]], ["nccl-held", "nccl-left", True])
        if held["used"] is None:
            self.skipTest("other processes are hidden from this one")
        self.assertTrue(held["used"])
        if any(not readable(pid) for pid in os.listdir("/proc") if pid.isdigit()):
            self.skipTest("a process of this user cannot be looked into: it may use anything")
        self.assertFalse(left["used"])


if __name__ == "__main__":
    unittest.main()
