#include "cli/screen.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>

// The wide functions draw what is not ASCII.
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>

namespace nlaunch::cli {
namespace {

enum Pair : short { kGood = 1, kWarn, kBad };

int attributes_of(report::Style style) {
  switch (style) {
    case report::Style::bold:
      return static_cast<int>(A_BOLD);
    case report::Style::dim:
      return static_cast<int>(A_DIM);
    case report::Style::good:
      return COLOR_PAIR(kGood);
    case report::Style::warn:
      return COLOR_PAIR(kWarn);
    case report::Style::bad:
      return COLOR_PAIR(kBad) | static_cast<int>(A_BOLD);
    case report::Style::selected:
      return static_cast<int>(A_REVERSE);
    case report::Style::plain:
      break;
  }
  return static_cast<int>(A_NORMAL);
}

std::optional<KeyPress> key_of(int read) {
  switch (read) {
    case ERR:
      return std::nullopt;
    case KEY_UP:
      return KeyPress{Key::up};
    case KEY_DOWN:
      return KeyPress{Key::down};
    case KEY_PPAGE:
      return KeyPress{Key::page_up};
    case KEY_NPAGE:
      return KeyPress{Key::page_down};
    case KEY_HOME:
      return KeyPress{Key::first};
    case KEY_END:
      return KeyPress{Key::last};
    case KEY_ENTER:
    case '\n':
    case '\r':
      return KeyPress{Key::enter};
    case KEY_BACKSPACE:
    case '\b':
    case 127:
      return KeyPress{Key::backspace};
    case 27:
      return KeyPress{Key::escape};
    case KEY_RESIZE:
      return KeyPress{Key::resized};
    default:
      break;
  }
  constexpr int kCtrlC = 3;
  if (read == kCtrlC) return KeyPress{Key::character, 'q'};
  const bool printable = read >= ' ' && read < 127;
  return KeyPress{Key::character, printable ? static_cast<char>(read) : '\0'};
}

}  // namespace

std::unique_ptr<TerminalScreen> TerminalScreen::open() {
  const char* terminal = std::getenv("TERM");
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return nullptr;
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0) return nullptr;
  // ncurses writes what is not ASCII as the locale has it; in the C locale, UTF-8 all the same.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  auto* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) return nullptr;
  ::set_term(screen);
  ::raw();  // Ctrl-C and Ctrl-\\ arrive as keys: the terminal is always given back
  ::noecho();
  ::keypad(::stdscr, true);
  ::set_escdelay(50);
  ::curs_set(0);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(kGood, COLOR_GREEN, -1);
    ::init_pair(kWarn, COLOR_YELLOW, -1);
    ::init_pair(kBad, COLOR_RED, -1);
  }
  return std::unique_ptr<TerminalScreen>(new TerminalScreen(screen));
}

TerminalScreen::~TerminalScreen() {
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(screen_));
}

report::Screen TerminalScreen::size() const {
  return {static_cast<std::size_t>(::getmaxx(::stdscr)), static_cast<std::size_t>(::getmaxy(::stdscr))};
}

void TerminalScreen::draw(const std::vector<report::ScreenLine>& lines) {
  ::werase(::stdscr);
  int row = 0;
  for (const auto& line : lines) {
    ::wmove(::stdscr, row++, 0);
    for (const auto& piece : line) {
      ::wattrset(::stdscr, attributes_of(piece.style));
      ::waddstr(::stdscr, piece.text.c_str());
    }
  }
  ::wattrset(::stdscr, attributes_of(report::Style::plain));
  ::wrefresh(::stdscr);
}

std::optional<KeyPress> TerminalScreen::wait(std::chrono::milliseconds time) {
  ::wtimeout(::stdscr, static_cast<int>(time.count()));
  return key_of(::wgetch(::stdscr));
}

void TerminalScreen::hand_over(const std::vector<std::string>& argv) {
  ::endwin();
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // As system(3) does: a Ctrl-C is for the program alone.
  struct sigaction ignore {};
  struct sigaction interrupt {
  }, quit{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &interrupt);
  ::sigaction(SIGQUIT, &ignore, &quit);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  if (::posix_spawnp(&child, pointers[0], nullptr, &attributes, pointers.data(), environ) == 0)
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  ::posix_spawnattr_destroy(&attributes);
  ::sigaction(SIGINT, &interrupt, nullptr);
  ::sigaction(SIGQUIT, &quit, nullptr);
  ::wrefresh(::stdscr);
}

}  // namespace nlaunch::cli
