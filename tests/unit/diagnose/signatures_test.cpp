#include "diagnose/signature.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnose/literals.h"
#include "diagnose/scanner.h"
#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

/// tests/diagnose/examples.tsv: lines that a signature must find, by its id.
std::multimap<std::string, std::string> examples() {
  std::multimap<std::string, std::string> all;
  std::ifstream file(NLAUNCH_SOURCE_DIR "/tests/diagnose/examples.tsv");
  for (std::string line; std::getline(file, line);)
    all.emplace(line.substr(0, line.find('\t')), line.substr(line.find('\t') + 1));
  return all;
}

class NcclReportedSetting : public Listener {
 public:
  void on_match(const Match& match) override { ids.insert(match.signature->id); }
  void on_line(const Line& /*line*/) override {}
  std::set<std::string> ids;
};

TEST(Signatures, EachFindsItsExamplesInAStream) {
  const auto all = examples();
  for (const auto& signature : signatures())
    EXPECT_TRUE(all.contains(signature.id)) << signature.id << " has no example";
  for (const auto& [id, line] : all) {
    ASSERT_NE(find_signature(id), nullptr) << id;
    NcclReportedSetting heard;
    scan_text(heard, "a line before\n" + line + "\na line after\n");
    EXPECT_TRUE(heard.ids.contains(id)) << id << ": " << line;
  }
}

TEST(Signatures, EachHasLiteralsThatAreLongEnough) {
  for (const auto& signature : signatures()) {
    EXPECT_TRUE(signature.regex().ok()) << signature.id;
    const auto literals = required_literals(signature.pattern);
    EXPECT_FALSE(literals.empty()) << signature.id;
    for (const auto& literal : literals)
      EXPECT_GE(literal.size(), Prefilter::kShortest) << signature.id << ": " << literal;
  }
}

TEST(Signatures, EachIsWholeAndHasAnIdOfItsOwn) {
  std::set<std::string> ids;
  for (const auto& signature : signatures()) {
    EXPECT_TRUE(ids.insert(signature.id).second) << signature.id << " is there twice";
    EXPECT_FALSE(signature.source.empty()) << signature.id;
    if (signature.kind == Kind::fact || signature.kind == Kind::end) continue;
    EXPECT_FALSE(signature.category.empty()) << signature.id;
    EXPECT_FALSE(signature.why.empty()) << signature.id;
    EXPECT_FALSE(signature.fix.empty()) << signature.id;
    EXPECT_EQ(signature.weight == 0, signature.kind == Kind::note || signature.kind == Kind::clue)
        << signature.id;
  }
}

TEST(Signatures, NamesInBracesAreGroupsOfThePattern) {
  static const re2::RE2 kPlace(R"(\{(\w+)\})");
  for (const auto& signature : signatures()) {
    const auto groups = signature.regex().NamedCapturingGroups();
    for (const auto& text : {signature.why, signature.fix}) {
      re2::StringPiece rest(text);
      std::string name;
      while (re2::RE2::FindAndConsume(&rest, kPlace, &name))
        EXPECT_TRUE(groups.contains(name)) << signature.id << ": " << name;
    }
  }
}

TEST(Signatures, GroupsThatNameSomebodyArePartsOfWho) {
  // A group is for one part of Who, or for an analysis; a name with a digit is the same part in another
  // place.
  const std::set<std::string> kOther{
      "code",     "size",     "how",       "what",  "why",  "file",   "name", "n",      "of",
      "seconds",  "ms",       "limit",     "seq",   "op",   "numel",  "pg",   "guid",   "world",
      "comm",     "enqueued", "completed", "net",   "lib",  "symbol", "so",   "module", "prog",
      "exe",      "image",    "header",    "more",  "dir",  "pci",    "xpid", "used",   "uid",
      "reporter", "other",    "type",      "first", "node", "python", "repo", "path"};
  for (const auto& signature : signatures()) {
    for (const auto& [group, number] : signature.regex().NamedCapturingGroups()) {
      const auto part = group.substr(0, group.find_last_not_of("0123456789") + 1);
      Origin origin;
      EXPECT_TRUE(origin.set(part, "x") || kOther.contains(part)) << signature.id << ": " << group;
    }
  }
}

}  // namespace
}  // namespace nlaunch::diagnose
