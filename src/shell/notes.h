#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/guarded.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/words.h"

/// What a recording says beside its commands: what is not here, what is made up, what the script writes
/// itself.
namespace nlaunch::shell {

/// The folder in which it is submitted.
std::string folder_of(const RecordRequest& request);

/// `<team>`, and in directives also `{account}`, in a script's text.
std::vector<Absent> placeholders_in(const std::string& script);

/// `$NAME` and `${NAME}` of a script that nothing sets: bash says nothing of a variable that is empty.
/// `texts`: its text, and those of all that it sources. `known`: what is set beside.
std::vector<Absent> unset_in(const std::string& script, const std::string& texts,
                             std::set<std::string> known);

/// What bash could not open, `read X < FILE`, by its messages, which name the script as bash knows it.
std::vector<Absent> not_opened_in(const std::string& output);

/// The files that a program prints, where it is one that prints files: `cat FILE`, `grep WORD FILE`.
Words files_printed_by(const Words& argv);

/// Keeps the notes of one recording while it is made.
class Notes {
 public:
  /// All of them outlive it.
  Notes(const RecordRequest& request, const ScratchLayer& layer, const Written& written, Recording& recording)
      : request_(request), layer_(layer), written_(written), recording_(recording) {}

  /// A file or folder that is on the cluster alone is taken as empty.
  void absent(const std::string& path);
  /// A file that decides what the script does, and is not here.
  void unread(std::uint32_t line, const std::string& path, bool is_sourced = false);
  /// What a program prints for the script is made up, or true here and now alone.
  void made_up(std::uint32_t line, const ProgramStart& start, const Words& argv);
  /// The batch script itself works on files. One note for each line.
  void done_here(std::uint32_t line, const Words& argv);
  /// A program prints files for the script.
  void read_by(std::uint32_t line, const ProgramStart& start, const Words& argv);
  /// It reads a file whose contents are not known: one that only seems to be there, or that a recorded
  /// program would write.
  void contents(std::uint32_t line, const ProgramStart& start, const Words& argv);
  /// It cannot be written to.
  void no_folder(const std::string& path) { no_folder_.insert(path); }
  /// The script's own folder, where the file is there as seen from that; else empty.
  [[nodiscard]] std::string found_in(const std::string& path) const;
  /// What shows at the end. `output`: the script's; `environment`: what it began with; `is_read`: by the
  /// script, what goes into a pipe.
  void finish(const std::string& output, const std::vector<std::string>& environment,
              const std::function<bool(const std::string& pipe)>& is_read);

 private:
  void finish_unset(const std::string& script, const std::vector<std::string>& environment);
  void finish_contents(const std::string& script);
  void finish_sourced();
  void finish_written();
  [[nodiscard]] bool has_unknown_contents(const std::string& path) const;
  [[nodiscard]] std::string text_of(const std::string& script) const;

  const RecordRequest& request_;
  const ScratchLayer& layer_;
  const Written& written_;
  Recording& recording_;
  std::set<std::string> no_folder_;
  std::vector<std::pair<Absent, std::string>>
      reading_;  ///< a file of unknown contents → who reads the output
};

}  // namespace nlaunch::shell
