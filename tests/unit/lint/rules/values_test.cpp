#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts number(const std::string& name, const std::string& value) {
  return found("not-a-number", scene({set(name, value)}));
}
Texts number_whole(const std::string& name, const std::string& value) {
  return whole("not-a-number", scene({set(name, value)}));
}

TEST(NotANumber, NcclAndLibfabricTakeTheDigitsInFront) {
  EXPECT_EQ(number_whole("NCCL_BUFFSIZE", "8M"),
            (Texts{"NCCL_BUFFSIZE=8M is not a number: NCCL reads 8",
                   "NCCL silently reads the leading digits, or 0 if there are none", "a plain number",
                   "NCCL: src/init.cc@2.30.7"}));
  EXPECT_EQ(number("FI_CXI_RDZV_THRESHOLD", "16K"),
            Texts{"error a.env:1:1 FI_CXI_RDZV_THRESHOLD=16K is not a number: libfabric reads 16"});
  EXPECT_EQ(number("NCCL_IB_DISABLE", "x"),
            Texts{"error a.env:1:1 NCCL_IB_DISABLE=x is not a number: NCCL reads 0"});
  for (const std::string yes : {"true", "yes", "on", "True"}) {
    EXPECT_EQ(number_whole("NCCL_IB_DISABLE", yes).at(2), "NCCL_IB_DISABLE=1");
  }
  for (const std::string no : {"false", "no", "off", "OFF"}) {
    EXPECT_EQ(number_whole("NCCL_IB_DISABLE", no).at(2), "NCCL_IB_DISABLE=0");
  }
  EXPECT_EQ(number("NCCL_BUFFSIZE", "8388608"), Texts{});
  EXPECT_EQ(number("NCCL_IB_DISABLE", "1"), Texts{});
}

TEST(NotANumber, ALeadingZeroMakesItOctal) {
  EXPECT_EQ(number("NCCL_BUFFSIZE", "010"),
            Texts{"warning a.env:1:1 NCCL_BUFFSIZE=010 is octal: NCCL reads 8"});
  EXPECT_EQ(number("NCCL_BUFFSIZE", "01"),
            Texts{"warning a.env:1:1 NCCL_BUFFSIZE=01 is octal: NCCL reads 1"});
  EXPECT_EQ(number("NCCL_BUFFSIZE", "00"), Texts{});
  EXPECT_EQ(number("NCCL_BUFFSIZE", "0x10"), Texts{});
}

TEST(NotANumber, EachOwnerHasItsOwnYesAndNo) {
  const auto otherwise = [](const std::string& name, const std::string& value) {
    const auto said = number_whole(name, value);
    return said.empty() ? "" : said.at(1);
  };
  EXPECT_EQ(otherwise("FI_CXI_ATS", "2"), "libfabric warns in its own log and uses the default");
  EXPECT_EQ(otherwise("FI_CXI_ATS", "y"), "libfabric warns in its own log and uses the default");
  EXPECT_EQ(otherwise("OFI_NCCL_CUDA_FLUSH_ENABLE", "yes"), "it aborts the program at startup");
  for (const auto* word : {"0", "1", "true", "False", "yes", "no", "on", "OFF"}) {
    EXPECT_EQ(otherwise("FI_CXI_ATS", word), "") << word;
  }
  for (const auto* word : {"0", "1", "true", "False"}) {
    EXPECT_EQ(otherwise("OFI_NCCL_CUDA_FLUSH_ENABLE", word), "") << word;
  }
  EXPECT_EQ(number_whole("FI_CXI_ATS", "2").at(0), "FI_CXI_ATS=2 is not a boolean for libfabric");
  EXPECT_EQ(number_whole("FI_CXI_ATS", "2").at(2), "FI_CXI_ATS=1 or FI_CXI_ATS=0");
  // How the others read theirs is not known.
  EXPECT_EQ(number("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "maybe"), Texts{});
  EXPECT_EQ(number("NCCL_SHARP_DISABLE", "maybe"), Texts{});
}

TEST(NotANumber, PyTorchDoesNotReadAllInOneWay) {
  const auto said = [](const char* name, const char* value) {
    const auto all = number_whole(name, value);
    return all.empty() ? "" : all.at(0) + "; " + all.at(1) + "; " + all.at(2);
  };
  EXPECT_EQ(said("TORCH_NCCL_NONBLOCKING_TIMEOUT", "ten"),
            "TORCH_NCCL_NONBLOCKING_TIMEOUT=ten is not a number for PyTorch; PyTorch reads 0 or rejects it, "
            "depending on the release; a plain number");
  EXPECT_EQ(
      said("TORCH_NCCL_NONBLOCKING_TIMEOUT", "10s"),
      "TORCH_NCCL_NONBLOCKING_TIMEOUT=10s is not a plain number: PyTorch reads 10; PyTorch reads the leading "
      "digits and silently ignores the rest; a plain number");
  EXPECT_EQ(said("TORCH_NCCL_COORD_CHECK_MILSEC", "ten"),
            "TORCH_NCCL_COORD_CHECK_MILSEC=ten is not a number for PyTorch; PyTorch rejects it, and the "
            "program exits "
            "when process groups are created, or earlier; a plain number of milliseconds");
  EXPECT_EQ(said("TORCHELASTIC_MAX_RESTARTS", "3x"),
            "TORCHELASTIC_MAX_RESTARTS=3x is not a number for PyTorch; PyTorch rejects it, and the program "
            "exits when "
            "process groups are created, or earlier; a plain number");
  EXPECT_EQ(said("TORCH_NCCL_NONBLOCKING_TIMEOUT", "10"), "");
}

TEST(NotANumber, OthersAndUnknownValuesAreLeftAlone) {
  EXPECT_EQ(found("not-a-number", scene({set("RAY_CGRAPH_get_timeout", "x"), set("NCCL_SOCKET_IFNAME", "x"),
                                         set("MY_OWN", "x"), set("NCCL_BUFFSIZE", ""), open("NCCL_BUFFSIZE"),
                                         unset("NCCL_BUFFSIZE")})),
            Texts{});
  auto gone = unset("NCCL_BUFFSIZE");
  gone.value = "8M";
  EXPECT_EQ(found("not-a-number", scene({gone})), Texts{});
}

Texts choice(const std::string& name, const std::string& value, const std::string& release = "") {
  auto input = scene({set(name, value)});
  if (!release.empty()) input.environments[0].releases["NCCL"] = version(release);
  return found("unknown-value", input);
}

TEST(UnknownValue, WhatComesOfItAndWhatIsMeant) {
  const auto said = [](const char* name, const char* value) {
    const auto all = whole("unknown-value", scene({set(name, value)}));
    return Texts{all.at(1), all.at(2)};
  };
  EXPECT_EQ(said("NCCL_DEBUG", "VERBOSE"),
            (Texts{"NCCL then prints nothing at all, not even warnings, and failures have no message",
                   "NCCL_DEBUG=WARN"}));
  EXPECT_EQ(said("NCCL_P2P_LEVEL", "sys"),
            (Texts{"NCCL silently ignores it (the names are case-sensitive)", "NCCL_P2P_LEVEL=SYS"}));
  EXPECT_EQ(said("FI_CXI_RX_MATCH_MODE", "soft"),
            (Texts{"cxi warns in its own log and uses hardware", "FI_CXI_RX_MATCH_MODE=software"}));
  EXPECT_EQ(said("FI_CXI_RX_MATCH_MODE", "har"),
            (Texts{"cxi warns in its own log and uses hardware", "FI_CXI_RX_MATCH_MODE=hardware"}));
  EXPECT_EQ(said("FI_CXI_RX_MATCH_MODE", "so").at(1),
            "use one of these; for details: nlaunch env --doc FI_CXI_RX_MATCH_MODE");
  EXPECT_EQ(said("NCCL_LAUNCH_MODE", "groups"),
            (Texts{"anything but GROUP means PARALLEL", "NCCL_LAUNCH_MODE=GROUP"}));
  EXPECT_EQ(said("NCCL_DEBUG_SUBSYS", "NETS"),
            (Texts{"an unknown name is silently dropped", "NCCL_DEBUG_SUBSYS=NET"}));
  EXPECT_EQ(said("FI_LOG_LEVEL", "qqqqqqqq"),
            (Texts{"libfabric does not accept it: most likely it silently uses its default",
                   "use one of these; for details: nlaunch env --doc FI_LOG_LEVEL"}));
}

TEST(UnknownValue, AValueMayBeNewerThanTheRelease) {
  EXPECT_EQ(choice("NCCL_P2P_LEVEL", "C2C", "2.26.1"),
            Texts{"error a.env:1:1 NCCL 2.26.1 does not know NCCL_P2P_LEVEL=C2C yet"});
  EXPECT_EQ(choice("NCCL_P2P_LEVEL", "C2C", "2.26.2"), Texts{});
  EXPECT_EQ(choice("NCCL_P2P_LEVEL", "C2C"), Texts{});
  EXPECT_EQ(choice("NCCL_P2P_LEVEL", "SYS", "2.3.5"), Texts{});
  auto input = scene({set("NCCL_P2P_LEVEL", "C2C")});
  input.environments[0].releases["NCCL"] = version("2.10.3");
  EXPECT_EQ(whole("unknown-value", input),
            (Texts{"NCCL 2.10.3 does not know NCCL_P2P_LEVEL=C2C yet",
                   "added in 2.26.2; NCCL silently ignores it (the names are case-sensitive)",
                   "one of LOC, NVL, NVB, PIX, PXB, PHB, SYS, 0, 1, 2, 3, 4 or 5",
                   "NCCL: src/graph/paths.cc@2.30.7"}));
}

TEST(UnknownValue, OfAListEachWordIsLookedAt) {
  EXPECT_EQ(
      choice("NCCL_DEBUG_SUBSYS", "^init,LOUD,net,QUIET", "2.20.3"),
      (Texts{"error a.env:1:1 NCCL_DEBUG_SUBSYS does not know 'LOUD': it accepts INIT, COLL, P2P, SHM, "
             "NET, GRAPH, "
             "TUNING, ENV, ALLOC, CALL, PROXY, NVLS or ALL",
             "error a.env:1:1 NCCL_DEBUG_SUBSYS does not know 'QUIET': it accepts INIT, COLL, P2P, SHM, "
             "NET, GRAPH, "
             "TUNING, ENV, ALLOC, CALL, PROXY, NVLS or ALL"}));
  EXPECT_EQ(choice("FI_HMEM", "cuda,system"), Texts{});
  // These two have a rule of their own.
  EXPECT_EQ(choice("NCCL_ALGO", "Round"), Texts{});
  EXPECT_EQ(choice("NCCL_PROTO", "Fast"), Texts{});
}

TEST(UnknownValue, NumbersAndTextsHaveNone) {
  EXPECT_EQ(choice("NCCL_CROSS_NIC", "7"), Texts{});
  EXPECT_EQ(choice("NCCL_NET", "anything"), Texts{});
  EXPECT_EQ(choice("NCCL_DEBUG", ""), Texts{});
}

Texts range(const std::string& name, const std::string& value) {
  return found("out-of-range", scene({set(name, value)}));
}

TEST(OutOfRange, BothEndsAreWithin) {
  for (const auto* value : {"0", "31", "0x1f", "32x", "x"})
    EXPECT_EQ(range("NCCL_IB_TIMEOUT", value), Texts{}) << value;
  EXPECT_EQ(range("NCCL_IB_TIMEOUT", "32"),
            Texts{"error a.env:1:1 NCCL_IB_TIMEOUT=32 is outside the range 0 to 31"});
  EXPECT_EQ(range("NCCL_IB_TIMEOUT", "-1"),
            Texts{"error a.env:1:1 NCCL_IB_TIMEOUT=-1 is outside the range 0 to 31"});
  EXPECT_EQ(range("NCCL_IB_TC", "-1"), Texts{});
  EXPECT_EQ(range("NCCL_IB_TC", "-2"), Texts{"error a.env:1:1 NCCL_IB_TC=-2 is outside the range -1 to 255"});
  EXPECT_EQ(range("FI_CXI_DEFAULT_TX_SIZE", "16"), Texts{});
  EXPECT_EQ(range("FI_CXI_DEFAULT_TX_SIZE", "16384"), Texts{});
  EXPECT_EQ(range("FI_CXI_DEFAULT_TX_SIZE", "15").size(), 1U);
  EXPECT_EQ(range("FI_CXI_DEFAULT_TX_SIZE", "16385").size(), 1U);
}

TEST(OutOfRange, WhatComesOfItDependsOnTheOwner) {
  const auto why = [](const char* name) { return whole("out-of-range", scene({set(name, "999999")})).at(1); };
  EXPECT_EQ(why("FI_CXI_DEFAULT_TX_SIZE"),
            "it is ignored: the default is used, with a warning in the library's own log");
  EXPECT_EQ(why("NCCL_IB_TIMEOUT"),
            "it is not checked here; the layer that receives it rejects or truncates it");
}

TEST(OutOfRange, OnlyNumbersWithARangeHaveOne) {
  EXPECT_EQ(range("NCCL_CROSS_NIC", "7"), Texts{});
  EXPECT_EQ(range("NCCL_BUFFSIZE", "-7"), Texts{});
  EXPECT_EQ(range("NCCL_P2P_LEVEL", "7"), Texts{});
  EXPECT_EQ(range("MY_OWN", "7"), Texts{});
}

LintInput algorithms(const std::string& name, const std::string& value, const std::string& release = "") {
  auto input = scene({set(name, value)});
  if (!release.empty()) input.environments[0].releases["NCCL"] = version(release);
  return input;
}

TEST(UnknownAlgorithm, ANameThatNcclDoesNotHave) {
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "^Ring,Round", "2.10.3")),
            Texts{"error a.env:1:1 NCCL_ALGO does not know 'Round': it accepts Tree or Ring"});
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_PROTO", "LL,Fast,Faster")),
            (Texts{"error a.env:1:1 NCCL_PROTO does not know 'Fast': it accepts LL, LL128 or Simple",
                   "error a.env:1:1 NCCL_PROTO does not know 'Faster': it accepts LL, LL128 or Simple"}));
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "ring,TREE")), Texts{});
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_DEBUG", "Round")), Texts{});
  EXPECT_EQ(found("unknown-algorithm", scene({open("NCCL_ALGO"), set("NCCL_ALGO", "")})), Texts{});
}

TEST(UnknownAlgorithm, WhatComesOfItDependsOnTheRelease) {
  const auto why = [](const char* release) {
    return whole("unknown-algorithm", algorithms("NCCL_ALGO", "Round", release)).at(1);
  };
  const std::string old = "before 2.24 an unknown name turns off everything that is not named correctly";
  const std::string now =
      "from 2.24 NCCL refuses to create a communicator; earlier releases turned off everything that was "
      "not named correctly";
  EXPECT_EQ(why("2.24.2"), old);
  EXPECT_EQ(why("2.24.3"), now);
  EXPECT_EQ(why(""), now);
}

TEST(UnknownAlgorithm, ListsForSingleFunctions) {
  const Texts old{"error a.env:1:1 NCCL 2.24.2 does not support per-function lists"};
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "allreduce:Round", "2.24.2")), old);
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "Tree;Round", "2.24.2")), old);
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "Tree", "2.24.2")), Texts{});
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "allreduce:Tree;broadcast:ring", "2.24.3")),
            Texts{});
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_ALGO", "Tree;broadcast:ring")), Texts{});
  EXPECT_EQ(found("unknown-algorithm", algorithms("NCCL_PROTO", "allreduce:Simple;broadcast:Round")),
            Texts{"error a.env:1:1 NCCL_PROTO does not know 'Round': it accepts LL, LL128 or Simple"});
}

Texts missing_algorithm(const std::string& value, const std::string& release = "") {
  auto input = scene({set("NCCL_ALGO", value)});
  if (!release.empty()) input.environments[0].releases["NCCL"] = version(release);
  return found("algorithm-missing", input);
}

TEST(AlgorithmMissing, EachCollectiveNeedsOneThatItHas) {
  EXPECT_EQ(missing_algorithm("NVLSTree"),
            Texts{"warning a.env:1:1 NCCL_ALGO=NVLSTree leaves no algorithm for "
                  "allgather, reducescatter, broadcast, reduce"});
  EXPECT_EQ(missing_algorithm("tree,nvls", "2.27.5"),
            Texts{"error a.env:1:1 NCCL_ALGO=tree,nvls leaves no algorithm for broadcast, reduce"});
  EXPECT_EQ(missing_algorithm("allgather:tree"),
            Texts{"warning a.env:1:1 NCCL_ALGO=allgather:tree leaves no algorithm for allgather"});
  EXPECT_EQ(missing_algorithm("^ring"), Texts{"warning a.env:1:1 NCCL_ALGO=^ring leaves no algorithm for "
                                              "broadcast, reduce"});
  EXPECT_EQ(missing_algorithm("tree;broadcast:ring"),
            Texts{"warning a.env:1:1 NCCL_ALGO=tree;broadcast:ring leaves "
                  "no algorithm for allgather, reducescatter, reduce"});
  for (const auto* fine :
       {"Ring", "Ring,Tree", "^NVLS", "allreduce:tree", "Tree,Ring;allreduce:nvls", "", "Treee"})
    EXPECT_EQ(missing_algorithm(fine), Texts{}) << fine;
  EXPECT_EQ(missing_algorithm("Tree", "2.23.4"), Texts{});
}

TEST(LiteralQuotes, QuotesWithinQuotes) {
  EXPECT_EQ(found("literal-quotes", script("export NCCL_DEBUG=\"'INFO'\"\n")),
            Texts{"error job.sh:1:8 the quotes are part of the value: NCCL_DEBUG='INFO'"});
  EXPECT_EQ(found("literal-quotes", script("export NCCL_DEBUG='INFO' MINE=\"'a'\" NCCL_ALGO=\"'a\"\n")),
            Texts{});
}

TEST(GfxVersion, ThreeNumbers) {
  for (const auto* wrong : {"gfx90a", "9.4", "9.0.a", "90.10", "9.4.2.", "64.0.0", "9.256.0", "11"}) {
    EXPECT_EQ(
        found("gfx-version", scene({set("HSA_OVERRIDE_GFX_VERSION", wrong)})),
        Texts{fmt::format("error a.env:1:1 HSA_OVERRIDE_GFX_VERSION={} is not major.minor.stepping", wrong)});
  }
  for (const auto* fine : {"9.4.2", "9.0.10", "10.3.0", ""})
    EXPECT_EQ(found("gfx-version", scene({set("HSA_OVERRIDE_GFX_VERSION", fine)})), Texts{}) << fine;
}

TEST(GfxVersion, ItHasToFitWhatIsBuiltFor) {
  const auto said = [](const std::string& version, const std::string& arch) {
    return whole("gfx-version",
                 scene({set("PYTORCH_ROCM_ARCH", arch), set("HSA_OVERRIDE_GFX_VERSION", version)}));
  };
  EXPECT_EQ(
      said("9.0.0", "gfx90a"),
      (Texts{"HSA_OVERRIDE_GFX_VERSION=9.0.0 is not gfx90a, for which PYTORCH_ROCM_ARCH builds",
             "gfx90a is 9.0.10: what is built for it does not run on a GPU that claims to be another",
             "HSA_OVERRIDE_GFX_VERSION=9.0.10, or leave it out", "ROCR-Runtime libhsakmt/src/topology.c"}));
  EXPECT_EQ(said("9.0.10", "gfx90a"), Texts{});
  EXPECT_EQ(said("10.3.0", "gfx90a;gfx1030"), Texts{});
  EXPECT_EQ(said("9.4.2", "gfx942:sramecc+:xnack-"), Texts{});
  EXPECT_EQ(said("9.0.0", "native"), Texts{});
}

TEST(RandomPort, MayBePrivileged) {
  const auto of_line = [](const std::string& line) {
    return found("random-port", script("#!/bin/bash\n" + line + "\npython a.py\n"));
  };
  EXPECT_EQ(of_line("export MASTER_PORT=$RANDOM"),
            Texts{"warning job.sh:2:1 MASTER_PORT may be below 1024: $RANDOM is between 0 and 32767"});
  EXPECT_EQ(of_line("port=\"${RANDOM}\"").size(), 1U);
  EXPECT_EQ(of_line("MASTER_PORT=$((20000 + RANDOM % 10000))"), Texts{});
  EXPECT_EQ(of_line("SEED=$RANDOM"), Texts{});
}

}  // namespace
}  // namespace nlaunch::lint
