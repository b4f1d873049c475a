#include "sys/elf_bindings.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

/// No page is smaller, so each block is either present or not.
constexpr std::size_t kMemoryBlock = 4096;
/// More than any library has of what is read here; limits the time for a damaged one.
constexpr std::uint64_t kMostMemory = 64U << 20U;
constexpr std::size_t kMostSegments = 256;
constexpr std::size_t kMostDynamic = 1024;
constexpr std::size_t kLongestName = 256;

/// A process's memory, read in cached blocks, up to a limit.
class MemoryBlocks {
 public:
  explicit MemoryBlocks(const ReadMemory& memory) : memory_(memory) {}

  /// False if not all of it is present.
  bool read(std::uint64_t address, std::span<std::byte> room) {
    while (!room.empty()) {
      const auto& block = block_of(address);
      const auto begin = static_cast<std::size_t>(address % kMemoryBlock);
      if (begin >= block.size()) return false;
      const auto size = std::min(room.size(), block.size() - begin);
      std::memcpy(room.data(), block.data() + begin, size);
      room = room.subspan(size);
      if (__builtin_add_overflow(address, size, &address)) return room.empty();
    }
    return true;
  }
  template <class T>
  std::optional<T> read(std::uint64_t address) {
    T value;
    if (!read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }

 private:
  const std::vector<std::byte>& block_of(std::uint64_t address) {
    const auto start = address - address % kMemoryBlock;
    const auto [found, is_new] = blocks_.try_emplace(start);
    if (is_new && taken_ < kMostMemory) {
      found->second.resize(kMemoryBlock);
      found->second.resize(std::min(memory_(start, found->second), kMemoryBlock));
      taken_ += kMemoryBlock;
    }
    return found->second;
  }

  const ReadMemory& memory_;
  std::unordered_map<std::uint64_t, std::vector<std::byte>> blocks_;
  std::uint64_t taken_ = 0;
};

/// Whether all segments of an object are where this load bias puts them. Small objects have several segments
/// in one page of the file, so that more than one mapping can contain its start.
bool is_loaded(const ElfObject& object, std::uint64_t bias, std::span<const Mapping> mappings) {
  return std::ranges::all_of(object.segments, [&](const ElfObject::Segment& segment) {
    const auto address = bias + segment.address;
    return std::ranges::any_of(mappings, [&](const Mapping& mapping) {
      return mapping.start <= address && address < mapping.end &&
             mapping.offset + (address - mapping.start) == segment.offset;
    });
  });
}

/// One object in memory. Sums of addresses wrap: damaged values lead to memory that does not exist.
class ElfReader {
 public:
  ElfReader(const ReadMemory& memory, const Mapping& first, std::span<const Mapping> mappings,
            std::string_view prefix)
      : blocks_(memory), first_(first), mappings_(mappings), prefix_(prefix) {}

  std::optional<ElfObject> read() {
    if (!read_segments() || !read_dynamic()) return std::nullopt;
    constexpr std::uint64_t kEntry = sizeof(Elf64_Rela);
    // Relative relocations come first and name no symbol.
    const auto relative = relative_ > tables_[kRela].bytes / kEntry ? 0 : relative_ * kEntry;
    const bool good = read_relocations(tables_[kRela].address + relative, tables_[kRela].bytes - relative) &&
                      read_relocations(tables_[kPlt].address, tables_[kPlt].bytes);
    if (!good) return std::nullopt;
    return std::move(object_);
  }

 private:
  bool read_segments() {
    const auto header = blocks_.read<Elf64_Ehdr>(first_.start);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
    const bool known = header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
                       (header->e_machine == EM_X86_64 || header->e_machine == EM_AARCH64);
    if (!known || header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > kMostSegments) return false;
    x86_ = header->e_machine == EM_X86_64;
    // Tools that modify files (patchelf) may have moved them to the end of the file.
    const auto holds = std::ranges::find_if(mappings_, [&](const Mapping& mapping) {
      return mapping.offset <= header->e_phoff &&
             header->e_phoff - mapping.offset < mapping.end - mapping.start;
    });
    if (holds == mappings_.end()) return false;
    std::vector<Elf64_Phdr> segments(header->e_phnum);
    const auto address = holds->start + (header->e_phoff - holds->offset);
    if (!blocks_.read(address, std::as_writable_bytes(std::span(segments)))) return false;
    const Elf64_Phdr* begin = nullptr;
    const Elf64_Phdr* dynamic = nullptr;
    for (const auto& segment : segments) {
      if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
      if (segment.p_type != PT_LOAD) continue;
      if (!begin || segment.p_offset < begin->p_offset) begin = &segment;
      if ((segment.p_flags & PF_X) == 0 && segment.p_filesz > 0)
        object_.segments.push_back({segment.p_vaddr, segment.p_offset});
      low_ = std::min(low_, segment.p_vaddr);
      high_ = std::max(high_, segment.p_vaddr + segment.p_memsz);
    }
    if (!begin || !dynamic) return false;
    object_.start = begin->p_vaddr - begin->p_offset;
    dynamic_ = {dynamic->p_vaddr, dynamic->p_memsz};
    bias_ = first_.start - object_.start;
    return is_loaded(object_, bias_, mappings_);
  }

  bool read_dynamic() {
    const auto count = std::min<std::uint64_t>(kMostDynamic, dynamic_.bytes / sizeof(Elf64_Dyn));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = blocks_.read<Elf64_Dyn>(bias_ + dynamic_.address + i * sizeof(Elf64_Dyn));
      if (!entry) return false;
      const auto value = entry->d_un.d_val;
      switch (entry->d_tag) {
        case DT_NULL:
          return true;
        case DT_SYMTAB:
          symbols_ = in_memory(value);
          break;
        case DT_STRTAB:
          strings_ = in_memory(value);
          break;
        case DT_STRSZ:
          string_bytes_ = value;
          break;
        case DT_RELA:
          tables_[kRela].address = in_memory(value);
          break;
        case DT_RELASZ:
          tables_[kRela].bytes = value;
          break;
        case DT_RELACOUNT:
          relative_ = value;
          break;
        case DT_JMPREL:
          tables_[kPlt].address = in_memory(value);
          break;
        case DT_PLTRELSZ:
          tables_[kPlt].bytes = value;
          break;
        default:
          break;
      }
    }
    return true;
  }

  /// glibc adds the load bias to addresses in the dynamic section, musl does not.
  [[nodiscard]] std::uint64_t in_memory(std::uint64_t address) const {
    return low_ <= address && address < high_ ? bias_ + address : address;
  }

  bool read_relocations(std::uint64_t address, std::uint64_t bytes) {
    if (bytes > kMostMemory) return false;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= bytes; at += sizeof(Elf64_Rela)) {
      const auto relocation = blocks_.read<Elf64_Rela>(address + at);
      if (!relocation) return false;
      const auto type = ELF64_R_TYPE(relocation->r_info);
      const bool binds = x86_ ? type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
                              : type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
      if (!binds) continue;
      auto name = imported(ELF64_R_SYM(relocation->r_info));
      if (!name) return false;
      if (!name->empty()) object_.imports.push_back({std::move(*name), relocation->r_offset});
    }
    return true;
  }

  /// The name of a symbol; empty if the object defines it itself, or if it is not wanted.
  std::optional<std::string> imported(std::uint64_t index) {
    const auto symbol = blocks_.read<Elf64_Sym>(symbols_ + index * sizeof(Elf64_Sym));
    if (!symbol || symbol->st_name >= string_bytes_) return std::nullopt;
    if (symbol->st_shndx != SHN_UNDEF) return "";
    std::string name;
    for (auto at = strings_ + symbol->st_name; name.size() < kLongestName; ++at) {
      const auto letter = blocks_.read<char>(at);
      if (!letter) return std::nullopt;
      if (*letter == '\0') break;
      if (name.size() < prefix_.size() && *letter != prefix_[name.size()]) return "";
      name += *letter;
    }
    return name.size() < prefix_.size() ? "" : name;
  }

  enum Table { kRela, kPlt, kTables };
  struct Extent {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };

  MemoryBlocks blocks_;
  const Mapping& first_;
  std::span<const Mapping> mappings_;
  std::string_view prefix_;
  ElfObject object_;
  bool x86_ = true;
  std::uint64_t bias_ = 0;
  std::uint64_t low_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t high_ = 0;
  Extent dynamic_;
  std::uint64_t symbols_ = 0;
  std::uint64_t strings_ = 0;
  std::uint64_t string_bytes_ = 0;
  std::uint64_t relative_ = 0;
  std::array<Extent, kTables> tables_{};
};

bool is_same_file(const MappedFile& a, const MappedFile& b) {
  return a.inode == b.inode && a.device == b.device && a.path == b.path;
}

void add(ObjectBindings& found, const std::string& function, const MappedFile* target) {
  // An entry that is not bound yet leads to the object's own code, or nowhere.
  if (!target || is_same_file(*target, found.object)) {
    found.unbound.push_back(function);
    return;
  }
  auto to = std::ranges::find_if(found.targets,
                                 [&](const auto& known) { return is_same_file(known.file, *target); });
  if (to == found.targets.end()) to = found.targets.insert(to, {*target, {}});
  to->functions.push_back(function);
}

}  // namespace

std::optional<ElfObject> read_elf_object(const ReadMemory& memory, const Mapping& first,
                                         std::span<const Mapping> mappings, std::string_view prefix) {
  return ElfReader(memory, first, mappings, prefix).read();
}

const ElfObject* BindingReader::find_object(const ReadMemory& memory, const Mapping& first,
                                            std::span<const Mapping> mappings) {
  const auto& file = first.file;
  const FileId id{file.device, file.inode, file.path};
  auto known = known_.find(id);
  if (known == known_.end()) {
    // An object that is still being loaded is incomplete: it is read again later.
    auto object = read_elf_object(memory, first, mappings, prefix_);
    if (!object) return nullptr;
    known = known_.emplace(id, std::move(*object)).first;
  }
  const auto& object = known->second;
  return is_loaded(object, first.start - object.start, mappings) ? &object : nullptr;
}

Result<std::vector<ObjectBindings>> BindingReader::read(pid_t pid, const std::vector<Mapping>& mappings) {
  const UniqueFd fd(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failure("sys.memory", "its memory cannot be read: {}", std::strerror(errno));
  const ReadMemory memory = [&](std::uint64_t address, std::span<std::byte> room) {
    if (address > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return std::size_t{0};
    const auto got = ::pread(fd.get(), room.data(), room.size(), static_cast<off_t>(address));
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  };
  std::map<std::pair<std::string, std::uint64_t>, std::vector<Mapping>> by_file;
  for (const auto& mapping : mappings) by_file[{mapping.file.device, mapping.file.inode}].push_back(mapping);
  const auto file_at = [&](std::uint64_t address) -> const MappedFile* {
    const auto next = std::ranges::upper_bound(mappings, address, {}, &Mapping::start);
    if (next == mappings.begin() || address >= std::prev(next)->end) return nullptr;
    return &std::prev(next)->file;
  };
  std::vector<ObjectBindings> all;
  for (const auto& [id, of_file] : by_file) {
    if (std::ranges::none_of(of_file, &Mapping::executable)) continue;
    for (const auto& first : of_file) {
      const auto* object = first.offset == 0 ? find_object(memory, first, of_file) : nullptr;
      if (!object || object->imports.empty()) continue;
      ObjectBindings found{first.file, {}, {}};
      for (const auto& import : object->imports) {
        std::uint64_t address = 0;
        const auto room = std::as_writable_bytes(std::span(&address, 1));
        const bool there = memory(first.start - object->start + import.slot, room) == room.size();
        add(found, import.name, there ? file_at(address) : nullptr);
      }
      all.push_back(std::move(found));
    }
  }
  return all;
}

}  // namespace nlaunch::sys
