#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "sys/proc.h"

/// To which file the imported functions of a running process are bound.
///
/// Everything is read from the process's memory, where the loader keeps its data: the file may have been
/// replaced or deleted since, or be in a container. x86-64 and aarch64.
namespace nlaunch::sys {

/// A function that an object imports, and the GOT entry in which the loader writes its address.
struct ElfImport {
  std::string name;
  std::uint64_t slot = 0;  ///< address within the object, without its load bias
};

/// What an object's headers contain. All addresses are those of its program headers.
struct ElfObject {
  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;  ///< in the file
  };
  std::uint64_t start = 0;        ///< the address at which the start of the file is mapped
  std::vector<Segment> segments;  ///< except code, which some programs move to large pages
  std::vector<ElfImport> imports;
};

/// Reads memory from an address on and returns the number of bytes read.
using ReadMemory = std::function<std::size_t(std::uint64_t address, std::span<std::byte> room)>;

/// The object whose file starts at `first`, with its imports whose names start with `prefix`. `mappings`: all
/// of its file. Empty if this is not a loaded object, or a damaged one.
std::optional<ElfObject> read_elf_object(const ReadMemory& memory, const Mapping& first,
                                         std::span<const Mapping> mappings, std::string_view prefix);

/// The imports of one object, by the file to which each is bound.
struct ObjectBindings {
  struct Target {
    MappedFile file;
    std::vector<std::string> functions;
  };
  MappedFile object;
  std::vector<Target> targets;
  std::vector<std::string> unbound;  ///< bound by the first call of each
};

/// Reads the bindings of processes; what it learns about a file is reused for all of them.
class BindingReader {
 public:
  /// For functions whose names start with `prefix`.
  explicit BindingReader(std::string prefix) : prefix_(std::move(prefix)) {}

  /// For all objects that import such functions. Fails if the memory of the process may not be read.
  Result<std::vector<ObjectBindings>> read(pid_t pid, const std::vector<Mapping>& mappings);

 private:
  const ElfObject* find_object(const ReadMemory& memory, const Mapping& first,
                               std::span<const Mapping> mappings);

  using FileId = std::tuple<std::string, std::uint64_t, std::string>;  // device, inode, path
  std::string prefix_;
  std::map<FileId, ElfObject> known_;
};

}  // namespace nlaunch::sys
