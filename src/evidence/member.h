#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/described.h"
#include "evidence/readers/server.h"
#include "evidence/readers/stacks.h"

namespace nlaunch::evidence {

/// An established TCP connection.
struct Connection {
  std::string local;  ///< "127.0.0.1:20113"
  std::string peer;
};

/// Another program of a member: the one that does a server's work.
struct Part {
  pid_t pid = 0;
  std::string title;  ///< "VLLM::EngineCore"
  char state = '?';   ///< as in proc(5)
  Stack python{};
  Stack native{};
  /// "VLLM::EngineCore (pid 4711)"
  [[nodiscard]] std::string str() const;
};

/// One rank, or a process of the plan without a rank: what the evidence says about it.
struct Member {
  std::string process;  ///< "learner.0"
  std::string role;     ///< "learner"
  std::optional<int> rank;
  std::string host;
  pid_t pid = 0;              ///< of its program, not of the shell around it
  std::string title{};        ///< of that program: "train.py", "vLLM API server"
  std::vector<Part> parts{};  ///< the other programs of its tree
  std::vector<pid_t> pids;    ///< of its whole tree
  char state = 'X';           ///< of its main thread, as in proc(5); X: it has exited
  double cpu = 0;             ///< CPUs that its main thread used
  bool cuda = false;  ///< it has loaded CUDA's library, and may be waiting for a GPU while it seems to work
  std::string wait_channel;                 ///< of its main thread
  std::string ended;                        ///< how it exited
  double ended_at = 0;                      ///< seconds since the attempt started; 0: unknown
  std::vector<std::string> killed_parts{};  ///< as in Subject
  std::string last_words;                   ///< the end of its log
  std::string last_step{};                  ///< "1000/1000", if its log shows that all steps are done
  Stack python;                             ///< empty: not available
  Stack native;
  std::vector<Connection> connections{};  ///< of its main program, and to the port of a server
  std::optional<Server> server{};         ///< if it was queried
  std::vector<std::string> gpus{};        ///< bus ids

  /// "learner.1 (rank 1) on nid002"
  [[nodiscard]] std::string str() const;
  /// The same name if its process stands for this rank alone: "learner.1", else "learner.0 (rank 3)".
  [[nodiscard]] std::string name() const;
};

/// What a member does.
struct Situation {
  enum class Doing {
    gone,
    stopped,          ///< by SIGSTOP or a debugger
    uninterruptible,  ///< in the kernel, for a disk, a file server or a driver
    paused,           ///< a server that was told to pause
    collective,       ///< in an operation that other ranks must also enter
    gpu,              ///< it waits for the GPU: possibly for a collective there
    ending,           ///< it has done its work, and its program is shutting down
    elsewhere,
    unknown,
  };
  BOOST_DESCRIBE_NESTED_ENUM(Doing, gone, stopped, uninterruptible, paused, collective, gpu, ending,
                             elsewhere, unknown)
  Doing doing = Doing::unknown;
  std::string operation;  ///< of `collective`: "all_reduce"; empty if only native code is known
  std::string place;      ///< where in the user's program: "step (train.py:12)"; may be empty
  /// For `elsewhere`: "sleeps", "computes", "waits"; for `ending`, the sign of it: "its last step, 8/8, is
  /// done"; for `stopped` and `uninterruptible`, its main program: "train.py (pid 4711)".
  std::string how;
  /// For `elsewhere`: it certainly does not wait for the GPU.
  bool certain = false;
  std::optional<Part> part{};  ///< which of its processes that is, if it is not its main program
};
Situation situation_of(const Member& member);
Situation situation_of(const Part& part);

/// Its main program has ended, is stopped, or is stuck in the kernel: it does nothing any more.
bool is_out_of_action(const Situation& situation);

/// "waits in all_reduce, called from step (train.py:12)"
std::string describe(const Situation& situation);

}  // namespace nlaunch::evidence
