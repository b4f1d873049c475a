#include "probe/interpreter.h"

#include <fmt/format.h>

#include <chrono>

#include "base/json.h"
#include "base/text.h"
#include "probe/output.h"
#include "sys/command.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// Less than whoever asks waits (src/preflight/inquiries.cpp): what a shim has started is ended from here.
constexpr Duration kToStart = 18s;
constexpr Duration kToImport = 85s;

/// In front of what is meant for us: a sitecustomize may print, too.
constexpr std::string_view kMark = "nlaunch-interpreter: ";

/// What is looked at stands before anything is imported that was not there, but for the standard library.
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
wanted = re.compile(r'^(torch|vllm|nvidia_nccl_cu\d+)-([^-]+)(-[^-]*)?\.(dist|egg)-info$')
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

/// The same start once more, under the eyes of an audit hook: run with -S, it calls site itself.
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

struct Run {
  std::string python;
  std::string workdir;
  std::vector<std::string> env;
  std::vector<std::string> options{};
  const char* code;
  Duration deadline = kToStart;
};

/// What the code has said, or `error`.
json run(const Run& what) {
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
  const auto words = text::split(text::trim(done->err), '\n');  // Python's last line says what it was
  return {{"ended", true},
          {"error", fmt::format("{} {}{}", what.python, done->status.str(),
                                words.back().empty() ? "" : ": " + text::printable(words.back()))}};
}

}  // namespace

json examine_interpreter(const std::string& python, const std::string& workdir) {
  auto out = run({.python = python, .workdir = workdir, .env = sys::own_environment(), .code = kLook});
  out["event"] = "interpreter";
  out["python"] = python;
  const bool touched = !out.value("imported", json::array()).empty() || !out.value("libcuda", "").empty();
  if (touched) {
    const auto traced = run({python, workdir, sys::own_environment(), {"-S"}, kTrace});
    if (const auto by = traced.value("by", json::array()); !by.empty()) out["by"] = by;
  } else {
    out["by"] = json::array();
  }
  return out;
}

json import_torch(const std::string& python, const std::string& workdir, const std::string& preload) {
  auto env = sys::own_environment();
  if (!preload.empty()) env.push_back("LD_PRELOAD=" + preload);
  auto out = run({python, workdir, std::move(env), {}, kImport, kToImport});
  out["event"] = "torch";
  out["python"] = python;
  return out;
}

}  // namespace nlaunch::probe
