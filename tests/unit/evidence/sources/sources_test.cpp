#include "evidence/source.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "sys/files.h"
#include "sys/proc_threads.h"

// Each source by itself, on a process of the test's own, with servers and debuggers of the test's own.
namespace nlaunch::evidence {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

/// A program that is there until the end of the test, with an environment of its own.
class Program {
 public:
  /// `environment` begins with PATH.
  explicit Program(std::vector<std::string> environment) {
    std::vector<char*> entries;
    for (auto& entry : environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execle("/bin/sleep", "sleep", "100", nullptr, entries.data());
      ::_exit(127);
    }
    for (int i = 0; i < 500 && !sys::read_proc_file(pid_, "environ").value_or("").starts_with("PATH="); ++i)
      std::this_thread::sleep_for(10ms);
  }
  ~Program() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

struct Said {
  std::string text;
  bool hangs_up = false;
};

/// A server on a port of 127.0.0.1: `answer` gets each line that comes.
class Server {
 public:
  using Answer = std::function<Said(const std::string&)>;

  explicit Server(Answer answer)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::string address() const { return address_; }

 private:
  void serve() {
    for (;;) {
      const int client = ::accept(socket_, nullptr, nullptr);
      if (client < 0) return;
      std::string line;
      char letter = 0;
      while (::read(client, &letter, 1) == 1) {
        line += letter;
        if (letter != '\n') continue;
        const auto said = answer_(line);
        sys::write_all(client, said.text);
        if (said.hangs_up) break;
        line.clear();
      }
      ::close(client);
    }
  }

  int socket_;
  Answer answer_;
  std::string address_;
  std::thread thread_;
};

class SourceOf : public testing::Test {
 protected:
  SourceOf() {
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "out");
    subject_.name = "learner.0";
    subject_.pid = program_.pid();
    spec_.host = "node1";
    spec_.folder = (folder_ / "evidence" / "now").string();
    ProcessState root;
    root.pid = program_.pid();
    root.program = true;
    root.state = 'S';
    tree_ = {root};
  }
  ~SourceOf() override { fs::remove_all(folder_); }

  /// What a source finds within `bound`.
  Found collect(std::string_view name, Duration bound = 10s) {
    for (const auto of : {Source::Of::process, Source::Of::host}) {
      for (const auto* source : sources(of)) {
        if (source->name != name) continue;
        return source->collect({spec_, of == Source::Of::host ? nullptr : &subject_, tree_, folder_ / "out",
                                masker_, CollectContext::Clock::now() + bound});
      }
    }
    ADD_FAILURE() << "no source " << name;
    return {};
  }

  [[nodiscard]] std::string written(const std::string& file) const {
    return sys::read_regular_file(folder_ / "out" / file, 1U << 24U).value_or("(no such file)");
  }

  /// A program of this name, found on the process's PATH.
  void put_program(const std::string& name, const std::string& script) {
    const auto path = folder_ / "bin" / name;
    std::ofstream(path) << "#!/bin/sh\n" << script;
    fs::permissions(path, fs::perms::owner_all);
  }

  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  /// The state of the process, once it is `wanted` or a second has passed.
  [[nodiscard]] char state(char wanted) const {
    char state = '?';
    for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(10ms)) {
      std::ifstream stat(fmt::format("/proc/{}/stat", program_.pid()));
      std::string pid;
      std::string name;
      stat >> pid >> name >> state;
      if (state == wanted) break;
    }
    return state;
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("nlaunch-sources-{}", ::getpid());
  Program program_{{fmt::format("PATH={}/bin:/bin:/usr/bin", folder_.string()), "RANK=3",
                    "HF_TOKEN=hf_abcdef", "PLAIN=value", "DECLARED=of-the-plan", "EMPTY="}};
  /// Makes the pipe that the recorder of a rank reads, and returns its end.
  [[nodiscard]] int pipe_of(int rank) const {
    const auto pipe = fmt::format("{}{}.pipe", subject_.recorder_pipe, rank);
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    return ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }

  Spec spec_;
  Subject subject_;
  Tree tree_;
  Masker masker_;
};

std::string lines(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i) text += fmt::format("line {}\n", i);
  return text;
}

// --- Logs ---

TEST_F(SourceOf, TheLogIsItsLast500Lines) {
  subject_.log = put("log", lines(1, 500));
  EXPECT_EQ(collect("log").got, std::vector<std::string>{"log.txt"});
  EXPECT_TRUE(written("log.txt") == lines(1, 500));
  subject_.log = put("log", lines(1, 501));
  collect("log");
  EXPECT_TRUE(written("log.txt") == lines(2, 501));
  subject_.log = put("log", lines(1, 600) + "no newline yet");
  collect("log");
  EXPECT_TRUE(written("log.txt") == lines(101, 600) + "no newline yet");
}

TEST_F(SourceOf, OfALongLineOfALogTheLastMebibyteIsRead) {
  subject_.log = put("log", "x" + std::string(1U << 20U, 'y'));
  collect("log");
  EXPECT_TRUE(written("log.txt") == std::string(1U << 20U, 'y'));
}

TEST_F(SourceOf, ALogThatCannotBeReadIsMissing) {
  EXPECT_TRUE(collect("log").missing.empty()) << "it has none";
  subject_.log = (folder_ / "none").string();
  auto found = collect("log");
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why, subject_.log + " cannot be read");
  subject_.log = (folder_ / "link").string();
  fs::create_symlink(put("log", "secret of others\n"), subject_.log);
  found = collect("log");
  EXPECT_TRUE(found.got.empty());
  EXPECT_EQ(found.missing.size(), 1U);
}

TEST_F(SourceOf, SecretsAreMaskedInWhatIsWritten) {
  masker_.add("hf_abcdef");
  subject_.log = put("log", "token hf_abcdef\n");
  collect("log");
  EXPECT_EQ(written("log.txt"), "token ***\n");
}

TEST_F(SourceOf, TheLogsOfNcclAreInOneFile) {
  EXPECT_TRUE(collect("NCCL log").got.empty());
  const auto one = put("nccl.1", "first\n");
  const auto two = put("nccl.2", "second\n");
  subject_.nccl_logs = (folder_ / "nccl.*").string();
  EXPECT_EQ(collect("NCCL log").got, std::vector<std::string>{"nccl-log.txt"});
  EXPECT_EQ(written("nccl-log.txt"), fmt::format("==> {} <==\nfirst\n\n==> {} <==\nsecond\n\n", one, two));
}

TEST_F(SourceOf, TheUseOfTheGpusIsThatOfTheHost) {
  EXPECT_TRUE(collect("use of the GPUs").got.empty());
  spec_.gpu_use = put("use", "{}\n");
  EXPECT_EQ(collect("use of the GPUs").got, std::vector<std::string>{"gpu-use.jsonl"});
  EXPECT_EQ(written("gpu-use.jsonl"), "{}\n");
}

// --- What /proc says ---

TEST_F(SourceOf, ProcessesAreThoseOfTheTree) {
  tree_[0].rank = 3;
  tree_[0].threads = {{tree_[0].pid, 'S', "main", 5, "hrtimer_nanosleep"}};
  subject_.rank = 2;
  EXPECT_EQ(collect("processes").got, std::vector<std::string>{"processes.json"});
  const auto object = json::parse(written("processes.json"));
  EXPECT_EQ(object["name"], "learner.0");
  EXPECT_EQ(object["host"], "node1");
  EXPECT_EQ(object["rank"], 2);
  ASSERT_EQ(object["processes"].size(), 1U);
  EXPECT_EQ(object["processes"][0]["rank"], 3);
  EXPECT_EQ(
      object["processes"][0]["threads"][0],
      (json{{"tid", tree_[0].pid}, {"name", "main"}, {"state", "S"}, {"wait_channel", "hrtimer_nanosleep"}}));
}

TEST_F(SourceOf, TheEnvironmentHasNoSecrets) {
  spec_.secrets = {"DECLARED"};
  EXPECT_EQ(collect("environment").got, std::vector<std::string>{"environment.json"});
  const auto object = json::parse(written("environment.json"));
  EXPECT_EQ(object["PLAIN"], "value");
  EXPECT_EQ(object["EMPTY"], "");
  EXPECT_EQ(object["RANK"], "3");
  EXPECT_EQ(object["HF_TOKEN"], "***");
  EXPECT_EQ(object["DECLARED"], "***");
}

TEST_F(SourceOf, AnEnvironmentThatCannotBeReadIsMissing) {
  subject_.pid = ::getpid() == 1 ? 2 : 1 << 22;
  const auto found = collect("environment");
  EXPECT_TRUE(found.got.empty());
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why, "another user's process, or one that has exited");
  tree_.clear();
  EXPECT_TRUE(collect("environment").missing.empty()) << "of a process that is not there nobody expects one";
}

TEST_F(SourceOf, SocketsHaveTheirPeersAndStates) {
  const Server server([](const auto&) { return Said(); });
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(server.address().substr(10))));
  ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  tree_[0].pid = ::getpid();
  EXPECT_EQ(collect("sockets").got, std::vector<std::string>{"sockets.json"});
  const auto sockets = json::parse(written("sockets.json"));
  const auto of = [&](const std::string& end, const std::string& state) {
    return std::ranges::count_if(
        sockets, [&](const json& one) { return one[end] == server.address() && one["state"] == state; });
  };
  EXPECT_EQ(of("peer", "ESTABLISHED"), 1);
  EXPECT_EQ(of("local", "LISTEN"), 1);
  ::close(client);
  tree_.clear();
  EXPECT_TRUE(collect("sockets").got.empty());
}

TEST_F(SourceOf, LibrariesAreThoseOfNccl) {
  EXPECT_EQ(collect("libraries").got, std::vector<std::string>{"libraries.json"});
  EXPECT_EQ(written("libraries.json"), "[]\n");
  tree_.clear();
  EXPECT_TRUE(collect("libraries").got.empty());
}

// --- NCCL RAS ---

/// As src/ras/client_support.cc answers, with or without JSON.
Server::Answer ras(bool as_json) {
  return [as_json](const std::string& line) -> Said {
    if (line.starts_with("CLIENT PROTOCOL ")) return {"SERVER PROTOCOL 2\n"};
    if (line == "TIMEOUT 5\n") return {"OK\n"};
    if (line == "SET FORMAT json\n") return {as_json ? "OK\n" : "ERROR: unknown command\n"};
    return {line == "VERBOSE STATUS\n" ? "the status\n" : "?\n", true};
  };
}

TEST_F(SourceOf, RasIsAskedForJsonAndElseTakenAsText) {
  for (const bool with_json : {true, false}) {
    const Server server(ras(with_json));
    subject_.ras = server.address();
    const std::string file = with_json ? "ras.json" : "ras.txt";
    EXPECT_EQ(collect("NCCL RAS").got, std::vector<std::string>{file});
    EXPECT_EQ(written(file), "the status\n");
  }
  tree_.clear();
  EXPECT_TRUE(collect("NCCL RAS").got.empty());
}

TEST_F(SourceOf, RasOfNobodyIsMissing) {
  EXPECT_TRUE(collect("NCCL RAS").missing.empty()) << "nobody has asked for it";
  const Server server([](const auto&) { return Said{"220 mail.example.org\x1b[0m\n"}; });
  subject_.ras = server.address();
  const auto found = collect("NCCL RAS");
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why,
            fmt::format("{} is not NCCL's: it answers '220 mail.example.org\\x1b[0m'", subject_.ras));
}

// --- PyTorch's flight recorder ---

TEST_F(SourceOf, TheFlightRecorderIsToldToWriteAndAwaited) {
  subject_.recorder_pipe = (folder_ / "pipe.").string();
  subject_.recorder_dump = (folder_ / "dump.").string();
  subject_.rank = 0;
  const int reader = pipe_of(0);
  std::thread rank([&] {
    char byte = 0;
    while (::read(reader, &byte, 1) != 1) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(byte, '1');
    put("dump.0", "half");
    std::this_thread::sleep_for(50ms);
    put("dump.0", "the whole");
  });
  const auto found = collect("flight recorder");
  rank.join();
  ::close(reader);
  EXPECT_EQ(found.got, std::vector<std::string>{"flight-recorder.0"});
  EXPECT_TRUE(found.missing.empty());
  EXPECT_EQ(written("flight-recorder.0"), "the whole");
  EXPECT_FALSE(std::filesystem::exists(subject_.recorder_dump + "0"))
      << "the next one there was not asked for";
}

TEST_F(SourceOf, AllFlightRecordersOfATreeAreAskedAtOnce) {
  subject_.recorder_pipe = (folder_ / "pipe.").string();
  subject_.recorder_dump = (folder_ / "dump.").string();
  subject_.rank = 0;
  tree_[0].rank = 1;
  std::vector<int> readers;
  for (const auto rank : {0, 1}) readers.push_back(pipe_of(rank));
  std::thread ranks([&] {  // the first one answers after it has seen that the other was asked, too
    char byte = 0;
    for (const auto reader : {readers[1], readers[0]})
      while (::read(reader, &byte, 1) != 1) std::this_thread::sleep_for(10ms);
    put("dump.1", "of 1");
    put("dump.0", "of 0");
  });
  const auto found = collect("flight recorder");
  ranks.join();
  for (const auto reader : readers) ::close(reader);
  EXPECT_EQ(found.got, (std::vector<std::string>{"flight-recorder.0", "flight-recorder.1"}));
}

TEST_F(SourceOf, AFlightRecorderThatDoesNotAnswerIsMissing) {
  subject_.recorder_pipe = (folder_ / "pipe.").string();
  subject_.recorder_dump = (folder_ / "dump.").string();
  tree_[0].rank = 4;
  auto found = collect("flight recorder");
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].what, "flight recorder of rank 4");
  EXPECT_EQ(found.missing[0].why, fmt::format("no process reads {}4.pipe", subject_.recorder_pipe));

  const int reader = pipe_of(4);
  put("dump.4", "of before");
  std::thread rank([&] {
    char byte = 0;
    while (::read(reader, &byte, 1) != 1) std::this_thread::sleep_for(10ms);
  });
  found = collect("flight recorder", 500ms);
  rank.join();
  ::close(reader);
  EXPECT_TRUE(found.got.empty()) << "what is there is of before";
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why,
            fmt::format("it was triggered, but {}4 did not appear in time", subject_.recorder_dump));
}

// PyTorch reads no more requests after it has written one by itself, as it does when a collective fails.
TEST_F(SourceOf, ADumpThatIsThereIsTakenWhereTheRequestIsNotRead) {
  subject_.recorder_pipe = (folder_ / "pipe.").string();
  subject_.recorder_dump = (folder_ / "dump.").string();
  subject_.rank = 0;
  const int reader = pipe_of(0);
  put("dump.0", "at the failure");
  const auto found = collect("flight recorder", 8s);
  ::close(reader);
  EXPECT_EQ(found.got, std::vector<std::string>{"earlier-flight-recorder.0"});
  EXPECT_TRUE(found.missing.empty());
  EXPECT_EQ(written("earlier-flight-recorder.0"), "at the failure");
}

// PyTorch writes it by itself when a collective times out.
TEST_F(SourceOf, ADumpThatIsThereIsTakenWhereNobodyCanBeTold) {
  subject_.recorder_dump = (folder_ / "dump.").string();
  subject_.rank = 0;
  put("dump.0", "at the timeout");
  const auto found = collect("flight recorder");
  EXPECT_EQ(found.got, std::vector<std::string>{"earlier-flight-recorder.0"});
  EXPECT_TRUE(found.missing.empty());
}

// --- Stacks ---

TEST_F(SourceOf, PythonStacksAreThoseOfEachPythonThatIsThere) {
  put_program("py-spy", "echo \"$*\"\n");
  EXPECT_TRUE(collect("Python stacks").got.empty()) << "there is no Python";
  tree_[0].python = true;
  for (const char gone : {'X', 'Z'}) {
    tree_.push_back(tree_[0]);
    tree_.back().state = gone;
  }
  const auto found = collect("Python stacks");
  EXPECT_EQ(found.got, std::vector<std::string>{"python-stacks.txt"});
  EXPECT_TRUE(found.missing.empty());
  EXPECT_EQ(written("python-stacks.txt"), fmt::format("dump --nonblocking --pid {}\n\n", program_.pid()));
}

TEST_F(SourceOf, AStackThatChangesIsReadAgain) {
  tree_[0].python = true;
  const auto tries = (folder_ / "tries").string();
  put_program("py-spy", fmt::format("echo >> {0}\n[ $(wc -l < {0}) -ge 5 ] && echo stack && exit\n"
                                    "echo 'Error: stack changed\nReason: 3' >&2\nexit 1\n",
                                    tries));
  EXPECT_EQ(collect("Python stacks").got, std::vector<std::string>{"python-stacks.txt"});
  put_program("py-spy", "echo 'Error: stack changed\nReason: 3' >&2\nexit 1\n");
  const auto found = collect("Python stacks");
  EXPECT_TRUE(found.got.empty());
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].what, fmt::format("Python stacks of pid {}", program_.pid()));
  EXPECT_EQ(found.missing[0].why, "py-spy: Error: stack changed");
  EXPECT_EQ(found.missing[0].install, "");
}

TEST_F(SourceOf, WhoMayNotLookIsToldWhoMay) {
  tree_[0].python = true;
  for (const auto* complaint : {"Error: Permission denied (os error 13)", "Operation not permitted"}) {
    put_program("py-spy", fmt::format("echo '{}' >&2\nexit 1\n", complaint));
    const auto found = collect("Python stacks");
    ASSERT_EQ(found.missing.size(), 1U);
    EXPECT_NE(found.missing[0].install, "");
  }
}

TEST_F(SourceOf, AToolThatDoesNotEndIsLeft) {
  tree_[0].python = true;
  put_program("py-spy", "sleep 60\n");
  const auto found = collect("Python stacks", 300ms);
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why, "py-spy did not answer in time");
}

TEST_F(SourceOf, NativeStacksAreThoseOfPrograms) {
  tree_[0].command = "sleep 100";
  tree_.push_back(tree_[0]);
  tree_[1].program = false;
  ASSERT_EQ(state('S'), 'S');
  EXPECT_EQ(collect("native stacks").got, std::vector<std::string>{"native-stacks.txt"});
  const auto text = written("native-stacks.txt");
  EXPECT_TRUE(
      text.starts_with(fmt::format("Process {0}: sleep 100\nTID {0} (sleep):\n#0  0x", program_.pid())))
      << text;
  EXPECT_NE(text.find("clock_nanosleep - /"), std::string::npos) << text;
  EXPECT_EQ(text.find("Process", 1), std::string::npos) << text;
  EXPECT_EQ(state('S'), 'S');
}

TEST_F(SourceOf, WhoIsStoppedIsLeftStopped) {
  ::kill(program_.pid(), SIGSTOP);
  ASSERT_EQ(state('T'), 'T');
  const auto found = collect("native stacks");
  EXPECT_TRUE(found.got.empty());
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].what, fmt::format("native stacks of pid {}", program_.pid()));
  EXPECT_EQ(found.missing[0].why, "it is stopped (state T), and was left stopped");
  EXPECT_EQ(state('T'), 'T');
}

TEST_F(SourceOf, NobodyIsAttachedToWithoutTime) {
  const auto found = collect("native stacks", -1s);
  EXPECT_TRUE(found.got.empty());
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why, "no time left");
}

TEST_F(SourceOf, WhoHasEndedHasNoStack) {
  ::kill(program_.pid(), SIGKILL);
  ASSERT_EQ(state('Z'), 'Z');
  const auto found = collect("native stacks");
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].why, "it has exited (state Z)");
}

// --- Servers ---

Server::Answer http(const std::map<std::string, std::string>& answers) {
  return [answers, target = std::make_shared<std::string>()](const std::string& line) -> Said {
    if (line.starts_with("GET ")) *target = line.substr(4, line.find(' ', 4) - 4);
    if (line != "\r\n") return {};
    const auto found = answers.find(*target);
    if (found == answers.end()) return {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true};
    return {
        fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", found->second.size(), found->second),
        true};
  };
}

TEST_F(SourceOf, AServerIsAskedTwiceForItsCounters) {
  const Server server(http({{"/health", ""},
                            {"/is_paused", R"({"is_paused": true})"},
                            {"/metrics", "vllm:num_requests_running{model_name=\"m\"} 2.0\n"}}));
  subject_.url = fmt::format("http://{}/health?token=1", server.address());
  EXPECT_EQ(collect("server").got, std::vector<std::string>{"server.json"});
  const auto object = json::parse(written("server.json"));
  EXPECT_EQ(object["url"], fmt::format("http://{}/health", server.address()));
  EXPECT_EQ(object["is_paused"]["status"], 200);
  EXPECT_EQ(object["is_paused"]["paused"], true);
  ASSERT_EQ(object["metrics"].size(), 2U);
  EXPECT_LT(object["metrics"][0]["at"].get<double>(), 0.5);
  EXPECT_GE(object["metrics"][1]["at"].get<double>(), 1.0);
  EXPECT_LT(object["metrics"][1]["at"].get<double>(), 1.9);
  EXPECT_FALSE(object["metrics"][0]["counters"].empty());
}

TEST_F(SourceOf, AServerThatIsNotThereSaysSo) {
  subject_.url = "http://127.0.0.1:9/health";
  EXPECT_EQ(collect("server").got, std::vector<std::string>{"server.json"});
  const auto object = json::parse(written("server.json"));
  EXPECT_TRUE(object["health"].contains("error"));
  EXPECT_FALSE(object["is_paused"].contains("paused"));
  tree_.clear();
  EXPECT_TRUE(collect("server").got.empty());
}

}  // namespace
}  // namespace nlaunch::evidence
