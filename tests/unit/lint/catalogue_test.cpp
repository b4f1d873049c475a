#include "lint/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>

#include "base/text.h"
#include "lint/tables.h"

namespace nlaunch::lint {
namespace {

Version version(std::string_view text) {
  return *parse_version(text);
}

const Variable& variable(std::string_view name) {
  const auto found = find_variables(name);
  if (found.empty()) throw std::runtime_error(std::string(name) + " is in no table");
  return *found.front();
}

bool is_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// "16384" or "16..16384", the lower bound first.
bool is_range(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return is_number(text);
  const auto low = text.substr(0, dots);
  const auto high = text.substr(dots + 2);
  return is_number(low) && is_number(high) && std::stoll(std::string(low)) < std::stoll(std::string(high));
}

std::vector<std::string> words(const std::vector<Accepted>& values) {
  std::vector<std::string> out;
  for (const auto& value : values) out.emplace_back(value.value);
  return out;
}

TEST(Catalogue, EveryVariableIsWellFormed) {
  const std::regex name("[A-Z_][A-Za-z0-9_]*");
  for (const auto& one : variables()) {
    SCOPED_TRACE(one.name);
    EXPECT_TRUE(std::regex_match(std::string(one.name), name));
    EXPECT_FALSE(one.owner.empty());
    EXPECT_FALSE(one.source.empty());
    if (one.first && one.last) {
      EXPECT_LE(*one.first, *one.last);
    }
    EXPECT_NE(one.instead, one.name);
    if (!one.instead.empty()) {
      EXPECT_FALSE(find_variables(one.instead).empty()) << one.instead;
    }
  }
}

TEST(Catalogue, EveryMeaningIsOneSentenceOfAPerson) {
  for (const auto& one : variables()) {
    SCOPED_TRACE(one.name);
    EXPECT_GT(one.meaning.size(), 8U);
    EXPECT_TRUE(one.meaning.ends_with('.')) << one.meaning;
    EXPECT_EQ(one.meaning.find("unwritten"), std::string::npos);
    EXPECT_EQ(one.meaning.find(". "), std::string::npos) << one.meaning;
    EXPECT_EQ(text::printable(one.meaning), one.meaning);
  }
}

TEST(Catalogue, ValuesFitTheirType) {
  for (const auto& one : variables()) {
    SCOPED_TRACE(one.name);
    switch (one.type) {
      case ValueType::integer:
        for (const auto& value : one.values) EXPECT_TRUE(is_range(value.value)) << value.value;
        if (one.values.size() > 1) {
          EXPECT_TRUE(std::ranges::all_of(words(one.values), is_number));
        }
        break;
      case ValueType::choice:
      case ValueType::list:
        EXPECT_GE(one.values.size(), 2U);
        break;
      case ValueType::boolean:
      case ValueType::interfaces:
      case ValueType::path:
        EXPECT_TRUE(one.values.empty());
        break;
      case ValueType::text:
        break;
    }
    for (const auto& value : one.values) {
      EXPECT_FALSE(value.value.empty());
      if (value.since && one.first) {
        EXPECT_GT(*value.since, *one.first);
      }
    }
  }
}

TEST(Catalogue, TablesAreSortedAndHaveEachNameOnce) {
  for (const auto& table : variable_tables()) {
    std::vector<std::string> names;
    bool titles = true;
    for (const auto& line : text::split(table.text, '\n')) {
      if (line.empty() || line.starts_with('#')) continue;
      if (!std::exchange(titles, false)) names.push_back(line.substr(0, line.find('\t')));
    }
    EXPECT_TRUE(std::ranges::is_sorted(names)) << table.name;
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << table.name;
  }
}

TEST(Catalogue, EveryReleaseIsOneThatItsOwnerHadByThen) {
  for (const auto& owner : owners()) {
    for (const auto& one : variables()) {
      if (one.owner != owner.name) continue;
      SCOPED_TRACE(one.name);
      if (one.first || one.last) {
        ASSERT_FALSE(owner.newest.empty());
      }
      if (one.first) {
        EXPECT_LE(*one.first, version(owner.newest));
      }
      if (one.last) {
        EXPECT_LT(*one.last, version(owner.newest));
      }
    }
  }
}

TEST(Catalogue, AMistakeIsNoVariable) {
  const auto table = std::ranges::find(variable_tables(), "mistakes.tsv", &TableText::name);
  std::size_t count = 0;
  for (const auto& line : text::split(table->text, '\n')) {
    const auto* mistake = find_mistake(line.substr(0, line.find('\t')));
    if (mistake == nullptr) continue;
    ++count;
    EXPECT_TRUE(find_variables(mistake->name).empty()) << mistake->name;
    EXPECT_FALSE(mistake->why.empty()) << mistake->name;
    EXPECT_FALSE(mistake->why.ends_with('.')) << mistake->name;
    EXPECT_FALSE(mistake->source.empty()) << mistake->name;
  }
  EXPECT_GT(count, 40U);
  for (const auto* name : {"NCCL_NVLINK_DISABLE", "NCCL_DEBUG_LOG_DIR", "NCCL_TIMEOUT", "NCCL_LIBRARY",
                           "TORCH_NCCL_DEBUG", "NCCL_FORCE_FLUSH", "NCCL_IGNORE_DUPLICATE_GPU"}) {
    EXPECT_NE(find_mistake(name), nullptr) << name;
  }
  EXPECT_EQ(find_mistake("NCCL_DEBUG"), nullptr);
}

TEST(Catalogue, FamiliesBelongToTheirOwners) {
  EXPECT_EQ(owner_of_family("NCCL_NOT_A_NAME")->name, "NCCL");
  EXPECT_EQ(owner_of_family("OFI_NCCL_NOT_A_NAME")->name, "aws-ofi-nccl");
  EXPECT_EQ(owner_of_family("FI_NOT_A_NAME")->name, "libfabric");
  EXPECT_EQ(owner_of_family("TORCH_NCCL_NOT_A_NAME")->name, "PyTorch");
  EXPECT_EQ(owner_of_family("NCCL_TESTS_NOT_A_NAME")->name, "nccl-tests");
  EXPECT_EQ(owner_of_family("SLURM_NOT_A_NAME"), nullptr);
}

TEST(Catalogue, ANameThatTwoReadIsThereTwice) {
  std::vector<std::string> readers;
  for (const auto* one : find_variables("CUDA_LAUNCH_BLOCKING")) readers.emplace_back(one->owner);
  std::ranges::sort(readers);
  EXPECT_EQ(readers, (std::vector<std::string>{"CUDA", "NCCL"}));
}

TEST(Catalogue, ReleasesThatReadAVariable) {
  const auto& order = variable("NCCL_LAUNCH_ORDER_IMPLICIT");
  EXPECT_FALSE(reads(version("2.25.1"), order));
  EXPECT_TRUE(reads(version("2.26.2"), order));
  EXPECT_TRUE(reads(version("2.30.7"), order));
  const auto& threshold = variable("NCCL_TREE_THRESHOLD");
  EXPECT_FALSE(reads(version("2.4.1"), threshold));
  EXPECT_TRUE(reads(version("2.4.8"), threshold));
  EXPECT_FALSE(reads(version("2.5.6"), threshold));
  EXPECT_TRUE(reads(version("2.3.5"), variable("NCCL_DEBUG")));
  EXPECT_FALSE(reads(version("2.27.7"), variable("NCCL_MULTI_RANK_GPU_ENABLE")));
  EXPECT_TRUE(reads(version("1.15.2"), variable("FI_CXI_DEFAULT_CQ_SIZE")));  // of a maker's own build
}

TEST(Catalogue, FactsByRelease) {
  EXPECT_EQ(variable("NCCL_CUMEM_ENABLE").history, "0 (2.18.1), -2 (2.19.1)");
  EXPECT_EQ(variable("NCCL_IB_TIMEOUT").history, "14 (2.3.5), 18 (2.14.3), 20 (2.23.4)");
  EXPECT_EQ(variable("NCCL_NET_FORCE_FLUSH").history, "1 (2.15.1), 0 (2.19.1)");
  EXPECT_EQ(variable("NCCL_LL128_C2C").first, version("2.27.3"));
  EXPECT_EQ(variable("NCCL_LL128_C2C").fallback, "1");
  EXPECT_EQ(variable("NCCL_MIN_NRINGS").instead, "NCCL_MIN_NCHANNELS");
  EXPECT_EQ(variable("NCCL_CROSS_NIC").fallback, "2");
  EXPECT_EQ(variable("FI_CXI_DEFAULT_CQ_SIZE").history, "1024 (1.21.0), 131072 (2.2.0)");
  EXPECT_EQ(variable("FI_CXI_RDZV_THRESHOLD").history, "2048 (1.21.0), 16384 (2.2.0)");
  EXPECT_EQ(variable("FI_CXI_DISABLE_CUDA_SYNC_MEMOPS").first, version("2.3.0"));
  EXPECT_EQ(words(variable("FI_CXI_DEFAULT_TX_SIZE").values), std::vector<std::string>{"16..16384"});
  EXPECT_FALSE(variable("FI_CXI_RX_MATCH_MODE").any_case);
  EXPECT_EQ(words(variable("FI_CXI_RX_MATCH_MODE").values),
            (std::vector<std::string>{"hardware", "software", "hybrid"}));
  EXPECT_EQ(variable("FI_OFI_RXM_USE_SRX").owner, "libfabric");  // the provider's name is ofi_rxm
  EXPECT_EQ(variable("OFI_NCCL_PROTOCOL").first, version("1.7.0"));
  EXPECT_EQ(variable("NCCL_ASYNC_ERROR_HANDLING").instead, "TORCH_NCCL_ASYNC_ERROR_HANDLING");
  EXPECT_EQ(variable("TORCH_FR_BUFFER_SIZE").first, version("2.8.0"));
  EXPECT_TRUE(variable("NCCL_DEBUG").any_case);
  EXPECT_FALSE(variable("NCCL_P2P_LEVEL").any_case);
}

TEST(Catalogue, ARowIsReadWhole) {
  const auto& one = variable("NCCL_TREE_THRESHOLD");
  EXPECT_EQ(one.owner, "NCCL");
  EXPECT_EQ(one.first, version("2.4.2"));
  EXPECT_EQ(one.last, version("2.4.8"));
  EXPECT_EQ(one.type, ValueType::integer);
  EXPECT_TRUE(one.values.empty());
  EXPECT_EQ(one.fallback, "-2");
  EXPECT_EQ(one.history, "");
  EXPECT_EQ(one.instead, "NCCL_ALGO");
  EXPECT_EQ(one.meaning, "Bytes up to which trees were used; the tuning model decides now.");
  EXPECT_EQ(one.source, "src/init.cc@2.4.8");
  EXPECT_EQ(variable("NCCL_DEBUG").first, std::nullopt);
  EXPECT_EQ(variable("NCCL_P2P_LEVEL").type, ValueType::choice);
  EXPECT_EQ(words(variable("NCCL_CROSS_NIC").values), (std::vector<std::string>{"0", "1", "2"}));
}

TEST(Catalogue, AnOwnerSaysWhatItsTableCovers) {
  const auto owner = [](std::string_view name) { return *std::ranges::find(owners(), name, &Owner::name); };
  EXPECT_EQ(owner("PyTorch").newest, "2.15.0");
  EXPECT_EQ(owner("PyTorch").families, (std::vector<std::string_view>{"TORCH_NCCL_", "TORCH_FR_"}));
  EXPECT_EQ(owner("Slurm").newest, "");
  EXPECT_TRUE(owner("Slurm").families.empty());
  // But for the table of mistakes, each table is an owner's.
  EXPECT_EQ(owners().size(), variable_tables().size() - 1);
}

TEST(Catalogue, AMistakeIsReadWhole) {
  const auto* mistake = find_mistake("NCCL_BUFFSIZE_MB");
  ASSERT_NE(mistake, nullptr);
  EXPECT_EQ(mistake->name, "NCCL_BUFFSIZE_MB");
  EXPECT_EQ(mistake->why, "the size is in bytes");
  EXPECT_EQ(mistake->instead, "NCCL_BUFFSIZE");
  EXPECT_EQ(mistake->source, "the sources of NCCL 2.3.5 to 2.30.7 do not have the name");
  EXPECT_EQ(find_mistake("name"), nullptr);
}

TEST(Catalogue, ANameThatNobodyReadsIsNotThere) {
  EXPECT_TRUE(find_variables("NCCL_NOT_A_NAME").empty());
  EXPECT_TRUE(find_variables("").empty());
}

TEST(Catalogue, LevelsByRelease) {
  const auto since = [](std::string_view name, std::string_view value) {
    const auto& values = variable(name).values;
    const auto found = std::ranges::find(values, value, &Accepted::value);
    return found == values.end() ? std::optional<Version>(version("0")) : found->since;
  };
  EXPECT_EQ(since("NCCL_P2P_LEVEL", "C2C"), version("2.26.2"));
  EXPECT_EQ(since("NCCL_P2P_LEVEL", "P2C"), version("2.27.3"));
  EXPECT_EQ(since("NCCL_P2P_LEVEL", "PHB"), std::nullopt);
  EXPECT_EQ(since("NCCL_DEBUG_SUBSYS", "RAS"), version("2.24.3"));
}

TEST(Catalogue, TheNearestName) {
  EXPECT_EQ(nearest_variable("NCCL_DEBGU"), "NCCL_DEBUG");
  EXPECT_EQ(nearest_variable("FI_CXI_RX_MATCHMODE"), "FI_CXI_RX_MATCH_MODE");
  EXPECT_EQ(nearest_variable("SOMETHING_ELSE_ALTOGETHER"), std::nullopt);
}

}  // namespace
}  // namespace nlaunch::lint
