#include "probe/library.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/units.h"
#include "probe/output.h"
#include "probe/question.h"

namespace nlaunch::probe {

Result<nlohmann::json> describe_nccl(const DynamicLibrary& library) {
  const auto get_version = library.find<int (*)(int*)>("ncclGetVersion");
  if (get_version == nullptr) {
    return failure("probe.library", "{} is not NCCL: it has no ncclGetVersion", library.path());
  }
  int code = 0;
  if (const int error = get_version(&code); error != 0) {
    return failure("probe.library", "ncclGetVersion of {} failed with code {}", library.path(), error);
  }
  nlohmann::json said{
      {"event", "library"}, {"path", library.path()}, {"code", code}, {"version", nccl_version(code).str()}};
  struct stat info {};
  if (::stat(library.path().c_str(), &info) == 0) {
    said["device"] = fmt::format("{}:{}", major(info.st_dev), minor(info.st_dev));
    said["inode"] = info.st_ino;
  }
  return said;
}

namespace {

/// `library PATH`, `find-library NAME`: the description, or {"event":"library","asked":...,"error":...}.
nlohmann::json examine_nccl(Arguments arguments) {
  const auto& name = arguments[0];
  const auto library = DynamicLibrary::open(name);
  if (!library) return {{"event", "library"}, {"asked", name}, {"error", text_of(library.error())}};
  auto said = describe_nccl(*library);
  if (!said) return {{"event", "library"}, {"asked", name}, {"error", text_of(said.error())}};
  (*said)["asked"] = name;
  return *said;
}

const Registered<Question> library_question{{
    .order = 20,
    .name = "library",
    .arguments = "PATH",
    .what = "the version of the libnccl in this file",
    .at_least = 1,
    .answer = examine_nccl,
}};

const Registered<Question> find_library_question{{
    .order = 30,
    .name = "find-library",
    .arguments = "NAME",
    .what = "what the loader loads for this name in this environment",
    .at_least = 1,
    .answer = examine_nccl,
}};

}  // namespace
}  // namespace nlaunch::probe
