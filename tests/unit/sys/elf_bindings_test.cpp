#include "sys/elf_bindings.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <stdexcept>

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

const fs::path kLibraries = fs::path(NLAUNCH_BUILD_DIR) / "lib" / "fake-nccl";
const std::string kWheel = kLibraries / "wheel" / "libnccl.so.2";
const std::string kOther = kLibraries / "other" / "libnccl.so.2";

void* load(const std::string& path, int flags) {
  auto* handle = ::dlopen(path.c_str(), flags);
  if (!handle) ::_exit(1);
  return handle;
}

std::string user(const std::string& kind) {
  return kLibraries / ("libuser_" + kind + ".so");
}

/// A process that has loaded what `prepare` loads, and waits.
class Child {
 public:
  explicit Child(const std::function<void()>& prepare) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid = ::fork();
    if (pid == 0) {
      prepare();
      if (::write(ready[1], "x", 1) == 1) ::pause();
      ::_exit(1);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "what it loads is not there";
    ::close(ready[0]);
  }
  ~Child() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid = 0;
};

using Lines = std::vector<std::string>;

/// "libuser_now.so: /…/libnccl.so.2 has ncclGetVersion ncclGroupStart", in order.
Lines bindings_of(pid_t pid) {
  BindingReader reader("nccl");
  Lines lines;
  for (int round = 0; round < 2; ++round) {  // the second time with what it has learned
    const auto found = reader.read(pid, file_mappings(pid).value());
    if (!found) return {found.error().first_message()};
    Lines now;
    const auto tell = [&](const ObjectBindings& object, const std::string& what, Lines functions) {
      std::ranges::sort(functions);
      auto line = fs::path(object.object.path).filename().string() + ": " + what;
      for (const auto& function : functions) line += " " + function;
      now.push_back(std::move(line));
    };
    for (const auto& object : *found) {
      for (const auto& [file, functions] : object.targets)
        tell(object, file.path + (file.deleted ? " (deleted)" : ""), functions);
      if (!object.unbound.empty()) tell(object, "unbound", object.unbound);
    }
    std::ranges::sort(now);
    if (round > 0) {
      EXPECT_EQ(now, lines);
    }
    lines = std::move(now);
  }
  return lines;
}

TEST(ElfBindings, AnObjectIsBoundToTheLibraryThatWasThereFirstHoweverManyAreMapped) {
  const Child wheel([] { load(user("now"), RTLD_NOW); });
  EXPECT_EQ(bindings_of(wheel.pid), Lines{"libuser_now.so: " + kWheel + " ncclGetVersion ncclGroupStart"});
  const Child both([] {
    load(kOther, RTLD_NOW | RTLD_GLOBAL);
    load(kWheel, RTLD_NOW);
    load(user("now"), RTLD_NOW);
  });
  EXPECT_EQ(bindings_of(both.pid), Lines{"libuser_now.so: " + kOther + " ncclGetVersion ncclGroupStart"});
}

TEST(ElfBindings, WhatOnlyOneCopyHasIsBoundThere) {
  const Child child([] {
    load(kOther, RTLD_NOW | RTLD_GLOBAL);
    load(kWheel, RTLD_NOW | RTLD_GLOBAL);
    load(user("newer"), RTLD_NOW);
  });
  EXPECT_EQ(bindings_of(child.pid), (Lines{"libuser_newer.so: " + kOther + " ncclGetVersion ncclGroupStart",
                                           "libuser_newer.so: " + kWheel + " ncclCommWindowRegister"}));
}

TEST(ElfBindings, TheFirstCallBindsLazily) {
  const auto start = [](bool call) {
    ::unsetenv("LD_BIND_NOW");
    auto* handle = load(user("lazy"), RTLD_LAZY);
    auto* use = reinterpret_cast<int (*)()>(::dlsym(handle, "use_version"));
    if (call && use() == 0) ::_exit(1);
  };
  const Child before([&] { start(false); });
  EXPECT_EQ(bindings_of(before.pid), Lines{"libuser_lazy.so: unbound ncclGetVersion ncclGroupStart"});
  const Child after([&] { start(true); });
  EXPECT_EQ(bindings_of(after.pid), (Lines{"libuser_lazy.so: " + kWheel + " ncclGetVersion",
                                           "libuser_lazy.so: unbound ncclGroupStart"}));
}

TEST(ElfBindings, FilesThatAreGoneAreReadFromMemory) {
  std::string pattern = (fs::temp_directory_path() / "nlaunch-elf-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  fs::copy_file(kWheel, folder / "libnccl.so.2");
  fs::copy_file(user("now"), folder / "libuser_now.so");
  const Child child([&] {
    load(folder / "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    load(folder / "libuser_now.so", RTLD_NOW);
  });
  fs::remove_all(folder);
  EXPECT_EQ(bindings_of(child.pid), Lines{"libuser_now.so: " + (folder / "libnccl.so.2").string() +
                                          " (deleted) ncclGetVersion ncclGroupStart"});
}

TEST(ElfBindings, AFileThatIsMappedAsDataIsNoObject) {
  const auto path = user("now");
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  const MappedFile file{path, "fe:00", 1, false};
  const std::vector<Mapping> whole{{0x10000, 0x10000 + bytes.size(), 0, true, file}};
  const ReadMemory memory = [&](std::uint64_t address, std::span<std::byte> room) {
    if (address < 0x10000 || address - 0x10000 >= bytes.size()) return std::size_t{0};
    const auto size = std::min(room.size(), bytes.size() - (address - 0x10000));
    std::memcpy(room.data(), bytes.data() + (address - 0x10000), size);
    return size;
  };
  const auto object = read_elf_object(memory, whole.front(), whole, "nccl");
  EXPECT_FALSE(object && !object->imports.empty());
}

TEST(ElfBindings, SaysWhyMemoryCannotBeRead) {
  const pid_t ended = [] {
    const Child child([] {});
    return child.pid;
  }();
  const auto found = BindingReader("nccl").read(ended, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().first_message(), "its memory cannot be read: No such file or directory");
}

/// An object as a loader without relocations would have it in memory.
struct Image {
  static constexpr std::uint64_t kBase = 0x7f0000000000;
  std::vector<std::byte> bytes;
  std::vector<Mapping> mappings;

  explicit Image(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(stream), {});
    Elf64_Ehdr header;
    if (file.size() < sizeof header) throw std::runtime_error(path + " is no object");
    std::memcpy(&header, file.data(), sizeof header);
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
      if (segment.p_type != PT_LOAD) continue;
      bytes.resize(
          std::max<std::size_t>(bytes.size(), (segment.p_vaddr + segment.p_memsz + 4095) / 4096 * 4096));
      std::memcpy(bytes.data() + segment.p_vaddr, file.data() + segment.p_offset, segment.p_filesz);
      const auto page = segment.p_vaddr % 4096;
      mappings.push_back({kBase + segment.p_vaddr - page,
                          kBase + segment.p_vaddr + segment.p_filesz,
                          segment.p_offset - page,
                          (segment.p_flags & PF_X) != 0,
                          {path, "fe:00", 1, false}});
    }
  }
  std::optional<ElfObject> read(std::size_t size) const {
    const ReadMemory memory = [&](std::uint64_t address, std::span<std::byte> room) {
      if (address < kBase || address - kBase >= size) return std::size_t{0};
      const auto count = std::min(room.size(), size - (address - kBase));
      std::memcpy(room.data(), bytes.data() + (address - kBase), count);
      return count;
    };
    return read_elf_object(memory, mappings.front(), mappings, "nccl");
  }
};

TEST(ElfBindings, DamagedObjectsAreReadWithoutHarm) {
  Image image(user("now"));
  const auto whole = image.read(image.bytes.size());
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->imports.size(), 2U);
  for (std::size_t size = 0; size < image.bytes.size(); size += 37) image.read(size);
  std::mt19937 random(1);
  // What is read lies in the headers, at the front, and in the dynamic section, in the last segments.
  const auto good = image.bytes;
  for (int round = 0; round < 20000; ++round) {
    image.bytes = good;
    for (int change = 0; change < 4; ++change) {
      const auto near = whole->segments.back().address - 1024 + random() % 2048;
      const auto place = random() % 3 == 0   ? random() % 1024
                         : random() % 2 == 0 ? near
                                             : random() % good.size();
      image.bytes[place % good.size()] = static_cast<std::byte>(random());
    }
    image.read(image.bytes.size());
  }
}

}  // namespace
}  // namespace nlaunch::sys
