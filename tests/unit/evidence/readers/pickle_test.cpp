#include "evidence/readers/pickle.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/json.h"

namespace nlaunch::evidence {
namespace {

using namespace std::string_view_literals;

std::string read(std::string_view bytes) {
  const auto value = read_pickle(bytes);
  return value ? json_text(*value) : value.error().first_message();
}

// pickle.dumps(VALUE, PROTOCOL) of Python 3.11.
TEST(Pickle, ReadsPlainDataOfEachProtocol) {
  // {"a": [1, -2, 300, 70000, 2**40, 1.5], "b": (True, None), 7: "x"}
  constexpr auto kExpected = R"({"7":"x","a":[1,-2,300,70000,1099511627776,1.5],"b":[true,null]})";
  EXPECT_EQ(
      read("(dp0\nVa\np1\n(lp2\nI1\naI-2\naI300\naI70000\naL1099511627776L\naF1.5\nasVb\np3\n(I01\nNtp4\ns"
           "I7\nVx\np5\ns."sv),
      kExpected);
  EXPECT_EQ(
      read(
          "\x80\x02}q\x00(X\x01\x00\x00\x00\x61q\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06"
          "\x00\x00\x00\x00\x00\x01G?\xf8\x00\x00\x00\x00\x00\x00\x65X\x01\x00\x00\x00\x62q\x03\x88N\x86q\x04"
          "K\x07X\x01\x00\x00\x00xq\x05u."sv),
      kExpected);
  EXPECT_EQ(
      read("\x80\x05\x95\x3b\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01\x61\x94]\x94(K\x01J\xfe\xff\xff\xffM,"
           "\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01G?"
           "\xf8\x00\x00\x00\x00\x00\x00\x65\x8c\x01\x62\x94"
           "\x88N\x86\x94K\x07\x8c\x01x\x94u."sv),
      kExpected);
}

TEST(Pickle, RecallsWhatItHasMemorised) {
  // a = [1]; [a, a], where the list is memorised before it is filled
  EXPECT_EQ(read("\x80\x02]q\x00(]q\x01K\x01"
                 "ah\x01"
                 "e."sv),
            "[[1],[1]]");
}

TEST(Pickle, RefusesWhatWouldExecute) {
  EXPECT_EQ(read("cos\nsystem\n(Vls\ntR."sv),
            "pickle rejected: opcode GLOBAL (0x63), which plain data does not need");
  EXPECT_EQ(read("\x80\x04\x8c\x02os\x8c\x06system\x93."sv),
            "pickle rejected: opcode STACK_GLOBAL (0x93), which plain data does not need");
  EXPECT_EQ(read("\x80\x04}}b."sv), "pickle rejected: opcode BUILD (0x62), which plain data does not need");
  EXPECT_EQ(read("\x80\x04(]o."sv), "pickle rejected: opcode OBJ (0x6f), which plain data does not need");
}

TEST(Pickle, RefusesWhatIsBroken) {
  EXPECT_EQ(read(""), "pickle rejected: it is truncated");
  EXPECT_EQ(read("\x80\x02."sv), "pickle rejected: it does not leave exactly one value");
  EXPECT_EQ(read("X\xff\xff\xff\xff."sv), "pickle rejected: it is truncated");
  EXPECT_EQ(read("a."sv), "pickle rejected: it pops a value where there is none");
  EXPECT_EQ(read("K\x01K\x02"
                 "a."sv),
            "pickle rejected: it appends to something that is not a list");
  EXPECT_EQ(read("h\x01."sv), "pickle rejected: it recalls a value that it has not memoized");
  EXPECT_EQ(read("}]K\x01s."sv), "pickle rejected: a key that is neither text nor a number");
  EXPECT_EQ(read("(."sv), "pickle rejected: a mark as a value");
}

TEST(Pickle, RefusesWhatAFewBytesMakeLarge) {
  // A list that is its own item.
  EXPECT_EQ(read("]q\x01h\x01"
                 "a."sv),
            "pickle rejected: a value nested deeper than 100");
  // Each list holds the one before ten times.
  std::string text(
      "]q\0"
      "0",
      4);
  for (int level = 1; level < 10; ++level) {
    text += "(";
    for (int i = 0; i < 10; ++i) text += std::string("h") + static_cast<char>(level - 1);
    text += std::string("lq") + static_cast<char>(level) + "0";
  }
  text += "h\x09.";
  EXPECT_EQ(read(text), "pickle rejected: a value of more than 2 million parts");
}

std::size_t most_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) << 10U;
}

TEST(Pickle, ABombOfAFewHundredBytesTakesBoundedMemory) {
  // Dicts of ten, which are the largest of all for their bytes: 10^9 in the end.
  std::string text(
      "\x80\x02}q\0"
      "0",
      6);
  for (int level = 1; level < 10; ++level) {
    text += "}(";
    for (int i = 0; i < 10; ++i)
      text += std::string("K") + static_cast<char>(i) + "h" + static_cast<char>(level - 1);
    text += std::string("uq") + static_cast<char>(level) + "0";
  }
  text += "h\x09.";
  ASSERT_LT(text.size(), 500U);
  const auto before = most_memory();
  EXPECT_EQ(read(text), "pickle rejected: a value of more than 2 million parts");
  EXPECT_LT(most_memory() - before, std::size_t{400} << 20U);
}

TEST(Pickle, TextsThatAreRecalledTakeTheirRoomEachTime) {
  std::string text = "(X";
  constexpr std::uint32_t kSize = 1U << 20U;
  for (const unsigned shift : {0U, 8U, 16U, 24U}) text += static_cast<char>(kSize >> shift & 0xFFU);
  text += std::string(kSize, 'x') + "q\x01";
  for (int i = 0; i < 63; ++i) text += "h\x01";
  EXPECT_EQ(read(text + "0l.").substr(0, 4), "[\"xx");
  EXPECT_EQ(read(text + "h\x01l."), "pickle rejected: a value with more than 64 MiB of text");
}

TEST(Pickle, ManySmallValuesAreRefused) {
  EXPECT_EQ(read("(" + std::string(2'000'001, 'N') + "l."),
            "pickle rejected: a value of more than 2 million parts");
}

TEST(Pickle, LeavesOutWhatIsNotAskedFor) {
  const auto value = read_pickle("}(X\x01\0\0\0aK\x01X\x06\0\0\0framesK\x02u."sv, "frames");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->dump(), "{\"a\":1}");
}

}  // namespace
}  // namespace nlaunch::evidence
