#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/guarded.h"
#include "shell/places.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/words.h"

/// What a recording contains besides commands: what is missing here, what is made up, and what the script
/// writes itself.
namespace nlaunch::shell {

/// The directory from which the script is submitted.
std::string folder_of(const RecordRequest& request);

/// `<team>`, and in directives also `{account}`, in a script's text.
std::vector<Absent> placeholders_in(const std::string& script);

/// `$NAME` and `${NAME}` in a script that nothing sets; bash does not report empty variables. `texts`: the
/// script and everything it sources. `known`: variables set elsewhere.
std::vector<Absent> unset_in(const std::string& script, const std::string& texts,
                             std::set<std::string> known);

/// `$1` to `$9` outside of functions, on lines that bash ran, for a script that gets only so many arguments:
/// bash does not report them either.
std::vector<Absent> missing_arguments_in(const std::string& script, std::size_t given,
                                         const std::set<std::uint32_t>& ran);

/// Files that bash could not open (`read X < FILE`), parsed from its messages, which use bash's name for the
/// script.
std::vector<Absent> not_opened_in(const std::string& output);

/// The files that a program prints, for programs that print files: `cat FILE`, `grep WORD FILE`.
Words files_printed_by(const Words& argv);

/// Keeps the notes of one recording while it is made.
class Notes {
 public:
  /// All arguments must outlive this object.
  Notes(const RecordRequest& request, const ScratchLayer& layer, const Written& written, const Places& places,
        Recording& recording)
      : request_(request), layer_(layer), written_(written), places_(places), recording_(recording) {}

  /// A file or directory that exists only on the cluster was treated as empty.
  void absent(const std::string& path);
  /// A file that affects what the script does is missing here.
  void unread(std::uint32_t line, const std::string& path, bool is_sourced = false);
  /// The output that the script reads from a program is made up, or true only here and now.
  void made_up(std::uint32_t line, const ProgramStart& start, const Words& argv);
  /// The batch script itself changes files. One note per line.
  void done_here(std::uint32_t line, const Words& argv);
  /// A program prints files for the script, or, if it `writes`, into another file.
  void read_by(std::uint32_t line, const ProgramStart& start, const Words& argv, bool writes);
  /// A program reads a file with unknown contents: one that only appears to exist, or that a recorded program
  /// would write.
  void contents(std::uint32_t line, const ProgramStart& start, const Words& argv, bool writes);
  /// A program whose exit code the script asks for, and that looks at what is not here: at a missing file, at
  /// the output of a program that has run, or at an answer that is made up (`writer`, who prints to it).
  void guess(std::uint32_t line, const ProgramStart& start, const Words& argv, const Words& writer);
  /// True for the output of programs that have run: in the foreground, or waited for.
  [[nodiscard]] bool is_finished_output(const std::string& path) const;
  /// Nothing can be written there.
  void no_folder(const std::string& path) { no_folder_.insert(path); }
  /// The script's own directory, if the file exists relative to it; else empty.
  [[nodiscard]] std::string found_in(const std::string& path) const;
  /// Adds what is known only at the end. `output`: the script's output; `environment`: its initial
  /// environment; `is_read`: whether the script reads from a pipe, or keeps what comes out of it in a file.
  void finish(const std::string& output, const std::vector<std::string>& environment,
              const std::function<bool(const std::string& pipe)>& is_read);

 private:
  void add_guess(std::uint32_t line, std::string command);
  void finish_unset(const std::string& script, const std::vector<std::string>& environment);
  void finish_contents(const std::string& script);
  void finish_sourced();
  void finish_written();
  void finish_tests();
  [[nodiscard]] bool has_unknown_contents(const std::string& path) const;
  /// A recorded program is told of it.
  [[nodiscard]] bool may_be_written(const std::string& path, const std::string& folder) const;
  [[nodiscard]] std::string text_of(const std::string& script) const;

  const RecordRequest& request_;
  const ScratchLayer& layer_;
  const Written& written_;
  const Places& places_;
  Recording& recording_;
  bool is_finishing_ = false;  ///< the commands know which waits they had
  std::set<std::string> no_folder_;
  std::vector<std::pair<Absent, std::string>>
      reading_;  ///< a file with unknown contents → where the output goes
};

}  // namespace nlaunch::shell
