#include <fmt/format.h>
#include <unistd.h>

#include <gnu/libc-version.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "probe/output.h"
#include "probe/question.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

/// os-release(5).
std::string name_of_system() {
  constexpr std::string_view kName = "PRETTY_NAME=";
  constexpr std::uint64_t kLimit = 64U << 10U;
  const auto content = sys::read_regular_file("/etc/os-release", kLimit);
  if (!content) return "";
  for (const auto& line : text::split(*content, '\n')) {
    if (!line.starts_with(kName)) continue;
    auto name = std::string(text::trim(line.substr(kName.size())));
    std::erase(name, '"');
    return name;
  }
  return "";
}

/// `container FILE...`: what a program finds in the container of this process:
///   event "container"; os ("Debian GNU/Linux 12 (bookworm)", from /etc/os-release), glibc ("2.36"), gpus
///   (true: the driver's device files exist), unreadable (of the files: path → why).
nlohmann::json examine_container(Arguments files) {
  nlohmann::json out{{"event", "container"},
                     {"os", name_of_system()},
                     {"glibc", ::gnu_get_libc_version()},
                     {"gpus", ::access("/dev/nvidiactl", F_OK) == 0},
                     {"unreadable", nlohmann::json::object()}};
  for (const auto& file : files) {
    if (::access(file.c_str(), R_OK) != 0) out["unreadable"][file] = std::strerror(errno);
  }
  return out;
}

const Registered<Question> container_question{{
    .order = 140,
    .name = "container",
    .arguments = "[FILE...]",
    .what = "the system and its glibc here, and which of the files cannot be read",
    .answer = examine_container,
}};

using nlohmann::json;
using namespace std::chrono_literals;

/// Less than the caller's timeout (src/preflight/checks/python.cpp): what a shim has started is killed from
/// here.
constexpr Duration kToStart = 18s;
constexpr Duration kToImport = 85s;

/// Marks our own output: a sitecustomize may print, too.
constexpr std::string_view kMark = "nlaunch-interpreter: ";

/// The data is taken before anything is imported that was not loaded, except the standard library.
constexpr const char* kLook = R"(
import sys
names = ('torch', 'cupy', 'jaxlib', 'pycuda', 'numba.cuda', 'tensorflow', 'vllm')
imported = [name for name in names if name in sys.modules]
import json, os, re
def mapped(part):
    with open('/proc/self/maps') as maps:
        for line in maps:
            path = line.split(None, 5)[5].strip() if len(line.split(None, 5)) > 5 else ''
            if os.path.basename(path).startswith(part):
                return path
    return ''
def devices():
    found = set()
    for fd in os.listdir('/proc/self/fd'):
        try:
            target = os.readlink('/proc/self/fd/' + fd)
        except OSError:
            continue
        if target.startswith('/dev/nvidia'):
            found.add(target)
    return sorted(found)
said = {'executable': sys.executable or '', 'version': '%d.%d.%d' % sys.version_info[:3], 'imported': imported,
        'libcuda': mapped('libcuda.so'), 'devices': devices(), 'packages': {}, 'torch_cuda': ''}
wanted = re.compile(r'^(torch|vllm|nixl(?:_cu\d+)?|nvidia_nccl_cu\d+)-([^-]+)(-[^-]*)?\.(dist|egg)-info$')
for folder in sys.path:
    try:
        entries = os.listdir(folder or '.')
    except OSError:
        continue
    for match in filter(None, map(wanted.match, entries)):
        said['packages'].setdefault(match.group(1).replace('_', '-'), match.group(2))
    if 'torch' in entries and not said['torch_cuda']:
        try:
            with open(os.path.join(folder, 'torch', 'version.py')) as file:
                found = re.search(r'^cuda\b[^=]*= *[\'"]([\d.]+)', file.read(), re.M)
            said['torch_cuda'] = found.group(1) if found else ''
        except (IOError, OSError):
            pass
files = [getattr(sys.modules.get(name), '__file__', None) for name in ('sitecustomize', 'usercustomize')]
said['by'] = [file for file in files if file and os.path.dirname(file) != os.path.dirname(os.__file__)]
)";

/// The same start once more, observed by an audit hook: run with -S, it calls site itself.
constexpr const char* kTrace = R"(
import sys
by = []
def place(frame):
    last = ''
    while frame:
        code, name = frame.f_code, frame.f_code.co_name
        if name == 'addpackage':
            seen = frame.f_locals
            return '%s (%s)' % (seen.get('fullname', seen.get('name')), seen.get('line', '').strip()[:80])
        if name in ('execsitecustomize', 'execusercustomize'):
            return last
        if not code.co_filename.startswith('<'):
            last = '%s:%d' % (code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return last
def watch(event, args):
    touches = event == 'import' and args[0] in ('torch', 'cupy', 'jaxlib', 'pycuda', 'tensorflow', 'vllm') \
        or event == 'ctypes.dlopen' and 'libcuda.so' in str(args[0])
    if touches and not by:
        by.append(place(sys._getframe(1)))
sys.addaudithook(watch)
import site
site.main()
import json
said = {'by': by}
)";

constexpr const char* kImport = R"(
import json
import torch
said = {'version': torch.__version__, 'cuda': torch.version.cuda or '', 'nccl': ''}
try:
    found = torch.cuda.nccl.version()
    said['nccl'] = '.'.join(map(str, found)) if isinstance(found, tuple) else str(found)
except Exception:
    pass
)";

struct PythonRun {
  std::string python;
  std::string workdir;
  std::vector<std::string> env;
  std::vector<std::string> options{};
  const char* code;
  Duration deadline = kToStart;
};

/// What the code printed, or `error`.
json run_python(const PythonRun& what) {
  sys::SpawnRequest request;
  request.argv = {what.python};
  request.argv.insert(request.argv.end(), what.options.begin(), what.options.end());
  const auto code = fmt::format("{}print('\\n{}' + json.dumps(said))\n", what.code, kMark);
  request.argv.insert(request.argv.end(), {"-c", code});
  request.env = what.env;
  request.cwd = what.workdir;
  const auto begin = std::chrono::steady_clock::now();
  const auto done = sys::run_command(request, what.deadline);
  if (!done) return {{"error", text_of(done.error())}};
  if (done->timed_out) {
    return {
        {"error", fmt::format("{} did not answer within {}", what.python, format_duration(what.deadline))}};
  }
  for (const auto& line : text::split(done->out, '\n')) {
    if (!line.starts_with(kMark)) continue;
    auto said = parse_json(line.substr(kMark.size()));
    if (!said.is_object()) continue;
    said["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return said;
  }
  const auto words = text::split(text::trim(done->err), '\n');  // Python's last line is the error
  return {{"ended", true},
          {"error", fmt::format("{} {}{}", what.python, done->status.str(),
                                words.back().empty() ? "" : ": " + text::printable(words.back()))}};
}

/// `interpreter PYTHON WORKDIR`: that Python as it starts in this environment, with its sitecustomize and
/// .pth files, and its packages by the names of their metadata directories, torch not imported:
///   event "interpreter"; python (as requested), executable, version ("3.11.7"), seconds (until it started);
///   packages {"torch": "2.9.0+cu130", "nvidia-nccl-cu12": ...} (torch, vllm, NIXL, and NCCL's wheels),
///   torch_cuda ("13.0", from torch/version.py; empty: built without, or no torch);
///   imported [module]: the modules that can use CUDA and that the start imported; libcuda (path, if it is
///   mapped), devices [path]: /dev/nvidia* that are open; by ["FILE:LINE", or for a .pth file "FILE (its
///   line)"]: what did the first of that; error: why it could not be queried; ended (true): it started, and
///   exited without output.
json examine_interpreter(Arguments arguments) {
  const auto& python = arguments[0];
  const auto& workdir = arguments[1];
  auto out = run_python({.python = python, .workdir = workdir, .env = sys::own_environment(), .code = kLook});
  out["event"] = "interpreter";
  out["python"] = python;
  const bool touched = !out.value("imported", json::array()).empty() || !out.value("libcuda", "").empty();
  if (touched) {
    const auto traced = run_python({python, workdir, sys::own_environment(), {"-S"}, kTrace});
    if (const auto by = traced.value("by", json::array()); !by.empty()) out["by"] = by;
  } else {
    out["by"] = json::array();
  }
  return out;
}

const Registered<Question> interpreter_question{{
    .order = 120,
    .name = "interpreter",
    .arguments = "PYTHON WORKDIR",
    .what = "how this Python starts, and its packages; torch is not imported",
    .at_least = 2,
    .answer = examine_interpreter,
}};

/// `torch PYTHON WORKDIR PRELOAD`: imports torch there, PRELOAD in LD_PRELOAD:
///   event "torch"; version, cuda ("13.0"; empty: built without), nccl ("2.28.9": the one that torch has
///   loaded; empty: built without), seconds, or error.
json import_torch(Arguments arguments) {
  const auto& python = arguments[0];
  auto env = sys::own_environment();
  if (arguments.size() > 2 && !arguments[2].empty()) env.push_back("LD_PRELOAD=" + arguments[2]);
  auto out = run_python({python, arguments[1], std::move(env), {}, kImport, kToImport});
  out["event"] = "torch";
  out["python"] = python;
  return out;
}

const Registered<Question> torch_question{{
    .order = 130,
    .name = "torch",
    .arguments = "PYTHON WORKDIR [PRELOAD]",
    .what = "torch, imported: its CUDA and its NCCL",
    .at_least = 2,
    .answer = import_torch,
}};

}  // namespace
}  // namespace nlaunch::probe
