"""nlaunch for Spack; docs/install.md says how it is used. Libraries are static, as in nlaunch's own releases: what is
installed runs without the prefixes of what it was built from."""
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Nlaunch(CMakePackage):
    """Launches RL post-training runs on GPU clusters: plans, checks, starts and supervises learners and engines."""

    license("Apache-2.0")

    # No address: the source is the folder given to `spack develop --path`.
    version("0.1.0")

    variant("cuda", default=False, description="The GPU half of nlaunch-probe")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("python@3.9:", type="build")

    depends_on("boost@1.81.0")
    depends_on("cli11@:2.4")  # 2.5 has another formatter
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("hwloc@2: libs=static ~libudev ~pci ~libxml2")
    depends_on("yaml-cpp ~shared +pic")
    depends_on("re2@:2023-02 ~shared +pic")  # later ones need abseil's libraries too
    depends_on("zlib +pic")
    depends_on("zstd libs=static")
    depends_on("openssl")
    depends_on("libseccomp")
    depends_on("elfutils")
    depends_on("ncurses +termlib")
    depends_on("libfabric")
    depends_on("gloo")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl", when="+cuda")

    requires("%gcc@12:", msg="C++23")

    def cmake_args(self):
        return [
            self.define("NLAUNCH_BUILD_TESTS", False),
            self.define_from_variant("NLAUNCH_CUDA", "cuda"),
        ]
