"""`nlaunch preflight --node --level quick` on machines whose NVML tells of faults, hangs, or is old."""
import json
import os
import subprocess
import time
import unittest

from harness import BUILD, NLAUNCH, CliTest

FAKES = BUILD / "lib" / "fake-nvml"
RESET = ("reset the GPU while it is idle (nvidia-smi --gpu-reset), or reboot the node; if the fault returns, have the GPU replaced")
FABRIC = "check systemctl status nvidia-fabricmanager (on NVL72 machines also nvidia-imex)"


def gpu(number):
    return f"GPU {number} (00000000:{0x1B + 0x10 * number:X}:00.0)"


class GpuHealth(CliTest):
    def check(self, state, age="new", **variables):
        """The rows about GPUs, and how long it took."""
        env = {**self.env, "LD_LIBRARY_PATH": str(FAKES / age), "FAKE_NVML": state, **variables}
        begin = time.monotonic()
        done = subprocess.run([NLAUNCH, "preflight", "--node", "--level", "quick", "--site", "local", "--json"], timeout=60,
                              capture_output=True, text=True, env=env, cwd=self.folder, stdin=subprocess.DEVNULL, check=False)
        self.report = json.loads(done.stdout)
        checks = ("gpus", "gpu-health", "nvlink", "gpu-mode", "gpu-processes")
        rows = [row for row in self.report["rows"] if row["check"] in checks]
        return [(row["check"], row["status"], row["subject"], row["value"]) for row in rows], time.monotonic() - begin

    def fixes(self, check):
        return [(row["fix"], row["who"]) for row in self.report["rows"] if row["check"] == check]

    def assert_others_answered(self):
        statuses = {row["check"]: row["status"] for row in self.report["rows"]}
        for check in ("limits", "space", "kernel-log", "shared-memory"):
            self.assertIn(statuses[check], ("pass", "warn", "skip"), self.report["rows"])

    def test_a_machine_that_is_well(self):
        rows, _ = self.check("well")
        self.assertEqual([row for row in rows if row[0] != "gpus"], [
            ("gpu-health", "pass", "4 GPUs",
             "no uncorrected ECC error, no row to remap, no recovery requested, no slowdown"),
            ("nvlink", "pass", "4 GPUs", "18 of 18 links up on each, NVSwitch fabric ready"),
            ("gpu-mode", "pass", "4 GPUs", "driver 570.158.01, PCIe x16"),
            ("gpu-processes", "pass", "4 GPUs", "not in use")])
        self.assertEqual([row[1] for row in rows if row[0] == "gpus"], ["pass"] * 4)

    def test_each_fault_is_named_with_its_gpu(self):
        rows, _ = self.check("sick", FAKE_NVML_PID=str(os.getpid()))
        command = subprocess.run(["ps", "-o", "args=", "-p", str(os.getpid())], capture_output=True, text=True, check=True).stdout
        holder = rows[-2][3]
        self.assertEqual([row for row in rows if row[0] != "gpus" and row[3] != holder], [
            ("gpu-health", "fail", gpu(0), "more uncorrected SRAM errors than NVIDIA accepts"),
            ("gpu-health", "fail", gpu(1), "2 uncorrected ECC errors since the driver was loaded"),
            ("gpu-health", "fail", gpu(1), "faulty memory rows are waiting to be remapped"),
            ("gpu-health", "warn", gpu(2), "slowed down by its hardware: it is too hot"),
            ("nvlink", "warn", gpu(0), "NVSwitch fabric: its bandwidth is degraded"),
            ("nvlink", "fail", gpu(2), "17 of 18 links up: link 5 down"),
            ("nvlink", "warn", gpu(3), "its links had to be brought up again 1 time since the driver was loaded"),
            ("gpu-mode", "fail", gpu(0), "MIG mode is on: programs see slices of it, which NCCL cannot use together"),
            ("gpu-mode", "warn", gpu(3), "its compute mode allows one process at a time (exclusive): a second one, such as a helper of a server, fails"),
            ("gpu-mode", "warn", gpu(3), "PCIe x8"),
            ("gpu-processes", "warn", gpu(3), "9.0 GiB of 80.0 GiB are in use, but NVML lists no process")])
        if "not visible here" not in holder:  # this machine is no container
            self.assertTrue(holder.startswith(f"held by pid {os.getpid()} ({command[:20]}"), holder)
            self.assertTrue(holder.endswith("38.0 GiB)"), holder)
            self.assertEqual(self.fixes("gpu-processes")[0], (f"stop your own processes: kill {os.getpid()}", "user"))
        self.assertIn((RESET, "admin"), self.fixes("gpu-health"))
        self.assertIn((FABRIC, "admin"), self.fixes("nvlink"))
        self.assertEqual(self.report["verdict"], "fail")

    def test_a_gpu_that_is_lost_fails(self):
        rows, _ = self.check("lost")
        self.assertIn(("gpu-health", "fail", "NVML GPU 3", "GPU is lost"), rows)

    def test_an_old_driver_is_no_fault(self):
        rows, _ = self.check("well", age="old")
        self.assertEqual([row[:3] for row in rows if row[0] not in ("gpus", "gpu-mode")], [
            ("gpu-health", "pass", "4 GPUs"), ("nvlink", "pass", "4 GPUs"), ("gpu-processes", "pass", "4 GPUs")])
        rows, _ = self.check("sick", age="old")
        self.assertIn(("nvlink", "fail", gpu(2), "17 of 18 links up: link 5 down"), rows)
        self.assertIn(("gpu-health", "warn", gpu(2), "slowed down by its hardware: it is too hot"), rows)

    def test_a_driver_that_hangs_is_unknown_and_the_rest_is_checked(self):
        rows, took = self.check("hangs")
        self.assertEqual(rows, [("gpus", "unknown", "NVML", "NVML did not answer within 15 s: the driver hangs")])
        self.assertLess(took, 25)
        self.assertEqual(self.report["verdict"], "unknown")
        self.assert_others_answered()

    def test_gpus_that_cannot_be_asked_are_unknown_and_the_rest_is_checked(self):
        rows, took = self.check("wedged")
        self.assertEqual([row for row in rows if row[0] != "gpus"], [
            ("gpu-health", "unknown", "state, links, modes and processes of the GPUs",
             "nlaunch-probe gpu-health did not answer within 10 s")])
        self.assertLess(took, 20)
        self.assert_others_answered()


if __name__ == "__main__":
    unittest.main()
