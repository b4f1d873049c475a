#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/timeline.h"
#include "report/table.h"

/// The live view of a run as a value: what is known of the run now, and the screen that shows it. Pure.
namespace nlaunch::report {

struct TopProcess {
  std::string name;
  std::string node{};   ///< empty in a run on one machine
  std::string gpus{};   ///< numbers on its node: "0,1"
  std::string state{};  ///< "starting", "ready", "running", "exited with code 1", "not started"
  bool alive = false;
  bool failed = false;
  double in_state = 0;  ///< seconds; 0 where it has not started
  // Of its GPUs, as nlaunch sampled them last; nothing: not known.
  std::optional<double> busy{};          ///< percent, the mean
  std::optional<double> power{};         ///< watts, the sum
  std::optional<double> memory_used{};   ///< bytes, the sum
  std::optional<double> memory_total{};  ///< bytes, the sum
  std::optional<std::uint64_t> step{};   ///< in the last lines of its log
  std::string last_line{};
};

struct TopStage {
  std::string roles;      ///< "engine, router"
  std::size_t ready = 0;  ///< processes that the next stage need not wait for any more
  std::size_t of = 0;
  std::optional<std::size_t> awaited{};  ///< the first process that is not ready, though it was started
  double timeout = 0;                    ///< seconds that this one may take to be ready; 0: any time
};

struct TopView {
  std::string name;
  std::string run;
  std::string site;
  std::string state;  ///< as `nlaunch ps` has it
  bool alive = false;
  unsigned attempt = 0;
  record::Timeline timeline{};
  record::StepTimes step_times{};
  std::vector<double> step_seconds{};                    ///< of the newest steps
  std::map<std::string, std::vector<double>> metrics{};  ///< in their order
  std::optional<double> walltime_left{};                 ///< seconds
  std::vector<TopStage> stages{};
  std::vector<TopProcess> processes{};
};

/// What the person at the terminal has chosen.
struct TopChoice {
  std::optional<std::size_t> selected{};  ///< a row, among those that fit the filter
  std::string filter{};                   ///< part of a name, a node or a state
  std::string message{};                  ///< in place of the keys
};

struct Screen {
  std::size_t width = 80;
  std::size_t height = 24;  ///< 0: as many lines as there are
};

enum class Style { plain, bold, dim, good, warn, bad, selected };
struct Piece {
  std::string text;
  Style style = Style::plain;
};
using ScreenLine = std::vector<Piece>;

/// The processes that fit the filter, in the order in which they are shown: failed ones, then those whose
/// step is behind, then as in the plan. Indices into `view.processes`.
std::vector<std::size_t> top_order(const TopView& view, const std::string& filter);
/// Of those, the ones for which the screen has room.
std::vector<std::size_t> top_rows(const TopView& view, const TopChoice& choice, const Screen& screen);
/// At most `screen.height` lines, none wider than `screen.width`.
std::vector<ScreenLine> top_screen(const TopView& view, const TopChoice& choice, const Screen& screen);
/// What a run is doing, in three lines none wider than `width`.
std::vector<ScreenLine> footer(const TopView& view, std::size_t width);
/// The process for which the next stage waits, of how many, for how long, and its last line; empty: no stage
/// waits.
std::string waiting_text(const TopView& view);
std::string screen_text(const std::vector<ScreenLine>& lines, const Paint& paint);

/// "▁▂▅▇" of the newest values, one character each.
std::string sparkline(const std::vector<double>& values, std::size_t width);

}  // namespace nlaunch::report
