// A main for a fuzz target: mutate ROUNDS FOLDER... feeds it the files of the folders, then mutations of
// them. The seed is fixed, so that a run that fails fails again; the input of the round is left in
// mutate-failed.bin.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr unsigned kSecondsPerInput = 20;
constexpr std::array<std::string_view, 50> kWords{"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ": ",
                                                  "- ",
                                                  ",",
                                                  "\n",
                                                  "\n  ",
                                                  "\t",
                                                  "'",
                                                  "\"",
                                                  "|\n",
                                                  ">-\n",
                                                  "&a ",
                                                  "*a",
                                                  "!!str ",
                                                  "<<: ",
                                                  "---\n",
                                                  "...\n",
                                                  "~",
                                                  "null",
                                                  "? ",
                                                  "%YAML 1.2\n",
                                                  "${",
                                                  "}",
                                                  "# ",
                                                  "\\",
                                                  "\xff",
                                                  "é",
                                                  "\xEF\xBB\xBF",
                                                  "010",
                                                  "1h",
                                                  "set: ",
                                                  "when: ",
                                                  "$(",
                                                  "`",
                                                  "<<EOF\n",
                                                  "<<-'E'\n",
                                                  "EOF\n",
                                                  ";;\n",
                                                  "case x in\n",
                                                  "esac\n",
                                                  "f() {\n",
                                                  "if [[ ",
                                                  "export A=",
                                                  "$((",
                                                  "$'",
                                                  "eval ",
                                                  std::string_view("\0", 1)};

std::vector<std::string> read_corpus(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::ranges::sort(paths);
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> corpus) : corpus_(std::move(corpus)) {}

  std::string next() {
    auto text = any_file();
    for (std::size_t edits = 1 + below(6); edits > 0; --edits) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& any_file() { return corpus_[below(corpus_.size())]; }

  void edit(std::string& text) {
    const auto at = below(text.size() + 1);
    const auto length = below(std::min<std::size_t>(text.size() - at, 80) + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, kWords[below(kWords.size())]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, any_file().substr(0, 300));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }

  std::vector<std::string> corpus_;
  std::mt19937 random_{20240229};
};

void feed(const std::string& text) {
  std::ofstream("mutate-failed.bin", std::ios::binary) << text;
  ::alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: mutate ROUNDS FOLDER...\n", stderr);
    return 2;
  }
  const auto corpus = read_corpus(argc, argv);
  if (corpus.empty()) {
    std::fputs("no file in the folders\n", stderr);
    return 2;
  }
  for (const auto& text : corpus) feed(text);
  Mutator mutator(corpus);
  const long rounds = std::atol(argv[1]);
  for (long round = 0; round < rounds; ++round) feed(mutator.next());
  std::filesystem::remove("mutate-failed.bin");
  std::printf("%zu files and %ld mutations were read\n", corpus.size(), rounds);
}
