#include "shell/srun.h"

#include <algorithm>
#include <ranges>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

/// The value of an option: none, only after `=` (or its letter), or also the next word.
enum class Value { none, attached, any };

// srun(1) of Slurm 22.05 to 24.11, pyxis, and uenv of CSCS; the letter comes before the colon.
constexpr std::string_view kWithValue =
    "A:account accel-bind acctg-freq bb bbf bcast-exclude b:begin D:chdir cluster-constraint M:clusters "
    "comment "
    "C:constraint container container-env container-id container-image "
    "container-mounts container-name container-save container-workdir S:core-spec cores-per-socket cpu-bind "
    "cpu-freq cpus-per-gpu c:cpus-per-task deadline delay-boot d:dependency m:distribution environment "
    "epilog "
    "e:error x:exclude export export-file extra B:extra-node-info gid gpu-bind gpu-freq G:gpus gpus-per-node "
    "gpus-per-socket gpus-per-task gres gres-flags het-group hint i:input J:job-name jobid L:licenses "
    "mail-type "
    "mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network F:nodefile "
    "w:nodelist N:nodes n:ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "ntasks-per-tres oom-kill-step open-mode o:output pack-group p:partition power prefer priority profile "
    "prolog q:qos "
    "r:relative reservation segment signal slurmd-debug sockets-per-node switches task-epilog "
    "task-prolog tasks-per-node thread-spec T:threads threads-per-core t:time time-min tmp tree-width "
    "tres-bind tres-per-task uenv uid view W:wait wckey";
constexpr std::string_view kWithAttached =
    "bcast compress exclusive I:immediate K:kill-on-bad-exit nice k:no-kill propagate resv-ports send-libs "
    "x11";
constexpr std::string_view kFlags =
    "async container-entrypoint-log contiguous container-mount-home container-readonly container-remap-root "
    "container-writable "
    "container-entrypoint X:disable-status exact external external-launcher h:help H:hold interactive "
    "l:label "
    "multi-prog Z:no-allocate no-bcast no-container-entrypoint no-container-mount-home "
    "no-container-remap-root O:overcommit overlap s:oversubscribe E:preserve-env pty Q:quiet "
    "quit-on-interrupt "
    "reboot spread-job stepmgr test-only u:unbuffered usage use-min-nodes v:verbose V:version whole";

struct Row {
  std::string name;
  char letter = 0;
  Value value = Value::none;
};

std::vector<Row> rows_of(std::string_view list, Value value) {
  std::vector<Row> rows;
  for (const auto& word : text::split(list, ' ')) {
    const bool letter = word.size() > 2 && word[1] == ':';
    rows.push_back({letter ? word.substr(2) : word, letter ? word[0] : char{0}, value});
  }
  return rows;
}

const std::vector<Row>& rows() {
  static const auto kRows = [] {
    auto all = rows_of(kWithValue, Value::any);
    for (const auto& more : {rows_of(kWithAttached, Value::attached), rows_of(kFlags, Value::none)})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kRows;
}

/// By its name or an unambiguous prefix, as getopt_long(3) does.
const Row* row_of(std::string name) {
  if (name == "cpu_bind" || name == "mem_bind") name[3] = '-';  // their names before Slurm 18.08
  const auto exact = std::ranges::find(rows(), name, &Row::name);
  if (exact != rows().end()) return &*exact;
  const auto begins = [&](const Row& row) { return row.name.starts_with(name); };
  return std::ranges::count_if(rows(), begins) == 1 ? &*std::ranges::find_if(rows(), begins) : nullptr;
}

const Row* row_of(char letter) {
  const auto found = std::ranges::find(rows(), letter, &Row::letter);
  return found == rows().end() ? nullptr : &*found;
}

struct Read {
  std::vector<SrunOption> options;
  std::size_t end = 0;  ///< where the program is
};

class Reader {
 public:
  explicit Reader(const Words& argv) : argv_(argv) {}

  Read read() {
    for (at_ = 1; at_ < argv_.size(); ++at_) {
      const auto& word = argv_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') break;
      word[1] == '-' ? long_one(word.substr(2)) : short_ones(word);
    }
    read_.end = std::min(at_, argv_.size());
    return std::move(read_);
  }

 private:
  std::optional<std::string> next() {
    return at_ + 1 < argv_.size() ? std::optional(argv_[++at_]) : std::nullopt;
  }

  void long_one(const std::string& word) {
    const auto equals = word.find('=');
    auto name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    const auto* row = row_of(name);
    if (row != nullptr && row->value == Value::any && !value) value = next();
    if (row != nullptr) name = row->name;
    read_.options.push_back({std::move(name), std::move(value), row != nullptr});
  }

  /// -n2, -n 2, -lu
  void short_ones(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto* row = row_of(word[i]);
      if (row == nullptr) {
        read_.options.push_back({std::string(1, word[i]), std::nullopt, false});
        continue;
      }
      SrunOption one{row->name};
      auto behind = word.substr(i + 1);
      if (row->value != Value::none && !behind.empty())
        one.value = std::move(behind);
      else if (row->value == Value::any)
        one.value = next();
      read_.options.push_back(std::move(one));
      if (row->value != Value::none) return;
    }
  }

  const Words& argv_;
  std::size_t at_ = 1;
  Read read_;
};

}  // namespace

std::vector<SrunOption> options_of_srun(const Words& argv) {
  return Reader(argv).read().options;
}

std::size_t words_of_srun(const Words& argv) {
  return Reader(argv).read().end;
}

std::optional<std::string> value_of(const std::vector<SrunOption>& options, std::string_view name) {
  for (const auto& one : options | std::views::reverse)
    if (one.name == name && one.value) return one.value;
  return std::nullopt;
}

std::size_t words_of_sbatch(const Words& argv) {
  std::size_t end = 1;
  while (end < argv.size() && argv[end].starts_with('-')) end += takes_value_of_sbatch(argv[end]) ? 2 : 1;
  return std::min(end, argv.size());
}

bool takes_value_of_sbatch(const std::string& option) {
  static const Options kOwn{"-a", "--array", "--wrap", "--export-file", "--batch"};
  return kOwn.contains(option) || (option != "-W" && takes_value_of_srun(option));  // -W: --wait
}

bool takes_value_of_srun(const std::string& option) {
  const auto* row = option.starts_with("--") ? row_of(option.substr(2))
                    : option.size() == 2     ? row_of(option[1])
                                             : nullptr;
  return row != nullptr && row->value == Value::any;
}

}  // namespace nlaunch::shell
