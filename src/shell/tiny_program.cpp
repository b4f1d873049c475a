#include "shell/tiny_program.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// ELF-64 (the System V ABI, gABI 4.1), and system calls by the numbers of linux/arch/*/: write(1, text,
// size), then exit(code). The text follows the instructions.
namespace nlaunch::shell {
namespace {

constexpr std::uint64_t kBase = 0x400000;        ///< where the file is mapped
constexpr std::uint64_t kLargestPage = 0x10000;  ///< the largest page of AArch64

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));  // both machines are little-endian
}

std::string instructions_x86_64(std::uint32_t size, std::uint32_t code) {
  constexpr std::uint32_t kWrite = 1;
  constexpr std::uint32_t kExit = 60;
  constexpr std::uint32_t kFromLea = 19;  // bytes from the end of lea to the text
  constexpr std::string_view kSyscall = "\x0f\x05";
  std::string out;
  const auto load = [&out](std::string_view opcode, std::uint32_t value) {
    out += opcode;
    append(out, value);
  };
  load("\xb8", kWrite);            // mov eax, 1
  load("\xbf", 1);                 // mov edi, 1
  load("\x48\x8d\x35", kFromLea);  // lea rsi, [rip + 19]
  load("\xba", size);              // mov edx, size
  out += kSyscall;
  load("\xb8", kExit);  // mov eax, 60
  load("\xbf", code);   // mov edi, code
  return out += kSyscall;
}

std::string instructions_aarch64(std::uint32_t size, std::uint32_t code) {
  constexpr std::uint32_t kHalf = 0xffff;
  constexpr std::uint32_t kSvc = 0xd4000001;
  std::string out;
  append(out, std::uint32_t{0xd2800020});                  // mov x0, #1
  append(out, std::uint32_t{0x10000101});                  // adr x1, #32
  append(out, 0xd2800002U | (size & kHalf) << 5U);         // movz x2, #size
  append(out, 0xf2a00002U | (size >> 16U & kHalf) << 5U);  // movk x2, #size, lsl #16
  append(out, std::uint32_t{0xd2800808});                  // mov x8, #64 (write)
  append(out, kSvc);
  append(out, 0xd2800000U | code << 5U);   // mov x0, #code
  append(out, std::uint32_t{0xd2800ba8});  // mov x8, #93 (exit)
  append(out, kSvc);
  return out;
}

}  // namespace

std::string tiny_program(std::string_view text, int code, Elf64_Half machine) {
  if (machine != EM_X86_64 && machine != EM_AARCH64) return "";
  const auto size = static_cast<std::uint32_t>(text.size());
  const auto status = static_cast<std::uint32_t>(code) & 0xffU;
  const auto instructions =
      machine == EM_X86_64 ? instructions_x86_64(size, status) : instructions_aarch64(size, status);
  Elf64_Ehdr header{};
  std::ranges::copy(std::string_view(ELFMAG), header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = machine;
  header.e_version = EV_CURRENT;
  header.e_entry = kBase + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_vaddr = segment.p_paddr = kBase;
  segment.p_align = kLargestPage;
  segment.p_filesz = segment.p_memsz = sizeof(header) + sizeof(segment) + instructions.size() + text.size();
  std::string file;
  append(file, header);
  append(file, segment);
  return file.append(instructions).append(text);
}

}  // namespace nlaunch::shell
