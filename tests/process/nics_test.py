"""The network adapters that nlaunch-probe finds below /sys, in trees like those of real machines. What it says of them is what the
checks are tested with (tests/unit/preflight/facts)."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROBE = os.path.join(os.environ.get("NLAUNCH_BUILD", "build"), "bin", "nlaunch-probe")
FACTS = pathlib.Path(__file__).resolve().parent.parent / "unit" / "preflight" / "facts"


class Machine:
    """A root folder with sys/ and dev/."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        for folder in ("sys/class", "sys/bus/pci/devices", "dev"):
            (self.root / folder).mkdir(parents=True)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def link(self, path, target):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.root / target)

    def card(self, bus_id, vendor, device, driver, of_class="0x020000"):
        folder = f"sys/devices/{bus_id}"
        for name, value in (("vendor", vendor), ("device", device), ("class", of_class)):
            self.write(f"{folder}/{name}", value)
        if driver:
            self.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/bus/pci/devices/{bus_id}", folder)
        return folder

    def interface(self, name, card, operstate="up", speed=200000):
        self.link(f"sys/class/net/{name}/device", card)
        self.write(f"sys/class/net/{name}/operstate", operstate)
        self.write(f"sys/class/net/{name}/carrier", int(operstate == "up"))
        self.write(f"sys/class/net/{name}/speed", speed)

    def slingshot(self, index, **interface):
        card = self.card(f"000{index}:01:00.0", "0x17db", "0x0501", "cxi_core")
        self.link(f"sys/class/cxi/cxi{index}/device", card)
        self.interface(f"hsn{index}", card, **interface)
        self.write(f"dev/cxi{index}", "")

    def rdma(self, name, index, driver, link_layer, rate, state="4: ACTIVE", physical="5: LinkUp", ids=("0x15b3", "0x1021")):
        of_class = "0x020700" if link_layer == "InfiniBand" else "0x020000"
        card = self.card(f"0000:{index + 24:02x}:00.0", *ids, driver, of_class)
        (self.root / card / "infiniband_verbs" / f"uverbs{index}").mkdir(parents=True)
        self.write(f"dev/infiniband/uverbs{index}", "")
        folder = f"sys/class/infiniband/{name}"
        self.link(f"{folder}/device", card)
        for file, value in (("state", state), ("phys_state", physical), ("rate", rate), ("link_layer", link_layer)):
            self.write(f"{folder}/ports/1/{file}", value)
        return card


def gh200(machine):
    """A node with four GH200 and as many Slingshot NICs."""
    for index in range(4):
        machine.slingshot(index)


def h100(machine):
    """Eight NDR ports for the GPUs, and a bonded RoCE card for storage."""
    for index in range(8):
        machine.rdma(f"mlx5_{index}", index, "mlx5_core", "InfiniBand", "400 Gb/sec (4X NDR)")
    card = machine.rdma("mlx5_bond_0", 8, "mlx5_core", "Ethernet", "25 Gb/sec (1X EDR)", ids=("0x15b3", "0x101d"))
    machine.interface("bond0", card, speed=25000)


def p5(machine):
    """An EC2 p5 has 32 EFA devices; here with two."""
    for index in range(2):
        machine.rdma(f"rdmap{index + 79}s0", index, "efa", "Unspecified", "100 Gb/sec (4X EDR)", ids=("0x1d0f", "0xefa1"))


def sick_gh200(machine):
    """A cable is out, a link came up at half its speed, a NIC is not the user's, one has lost its driver."""
    machine.slingshot(0)
    machine.slingshot(1, speed=100000)
    machine.slingshot(2, operstate="down", speed=-1)
    machine.card("0003:01:00.0", "0x17db", "0x0501", "")
    machine.card("0004:01:00.0", "0x8086", "0x1521", "")  # not of the fabric


def sick_h100(machine):
    machine.rdma("mlx5_0", 0, "mlx5_core", "InfiniBand", "400 Gb/sec (4X NDR)")
    machine.rdma("mlx5_1", 1, "mlx5_core", "InfiniBand", "10 Gb/sec (4X SDR)", "1: DOWN", "2: Polling")
    (machine.root / "dev/infiniband/uverbs0").unlink()


class Nics(unittest.TestCase):
    maxDiff = None

    def look(self, make):
        root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, root)
        make(Machine(root + "/machine"))
        done = subprocess.run([PROBE, "nics", root + "/machine"], capture_output=True, text=True, timeout=30, check=True)
        return json.loads(done.stdout.replace(root + "/machine/", "/"))

    def recorded(self, make):
        said = self.look(make)
        path = FACTS / f"nics-{make.__name__.replace('_', '-')}.json"
        if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
            path.write_text(json.dumps(said, indent=1) + "\n")
        self.assertEqual(said, json.loads(path.read_text()))
        return said

    def test_four_slingshot_nics(self):
        said = self.recorded(gh200)
        self.assertEqual([(nic["name"], nic["interface"], nic["up"], nic["gbits"], nic["driver"]) for nic in said["nics"]],
                         [(f"cxi{i}", f"hsn{i}", True, 200, "cxi_core") for i in range(4)])

    def test_infiniband_and_the_storage_beside_it(self):
        said = self.recorded(h100)
        self.assertEqual([(nic["name"], nic["kind"], nic["gbits"]) for nic in said["nics"][-2:]],
                         [("mlx5_7", "ib", 400), ("mlx5_bond_0", "roce", 25)])

    def test_efa(self):
        self.assertEqual([nic["kind"] for nic in self.recorded(p5)["nics"]], ["efa", "efa"])

    def test_what_is_wrong_with_slingshot(self):
        said = self.recorded(sick_gh200)
        self.assertEqual([(nic["state"], nic["up"], nic["gbits"]) for nic in said["nics"]],
                         [("up", True, 200), ("up", True, 100), ("down", False, 0)])
        self.assertEqual(said["idle"], [{"bus_id": "0003:01:00.0", "kind": "cxi", "id": "17db:0501"}])

    def test_what_is_wrong_with_infiniband(self):
        nics = self.recorded(sick_h100)["nics"]
        self.assertEqual([nic["state"] for nic in nics], ["ACTIVE", "DOWN, Polling"])
        self.assertEqual(nics[0]["device_error"], "No such file or directory")

    def test_this_machine(self):
        done = subprocess.run([PROBE, "nics"], capture_output=True, text=True, timeout=30, check=True)
        self.assertEqual(set(json.loads(done.stdout)), {"event", "nics", "idle"})


if __name__ == "__main__":
    unittest.main()
