#include "shell/tracee.h"

#include <elf.h>
#include <limits.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sys/proc_threads.h"

namespace nlaunch::shell {

bool get_registers(pid_t pid, Registers& registers) {
  iovec vector{&registers, sizeof(registers)};
  return ::ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector) == 0;
}

bool set_registers(pid_t pid, const Registers& registers) {
  iovec vector{const_cast<Registers*>(&registers), sizeof(registers)};
  return ::ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &vector) == 0;
}

#if defined(__x86_64__)

namespace {
Word Registers::*const kArguments[] = {&Registers::rdi, &Registers::rsi, &Registers::rdx,
                                       &Registers::r10, &Registers::r8,  &Registers::r9};
Word stack_of(const Registers& registers) {
  return registers.rsp;
}
}  // namespace

int call_number(const Registers& registers) {
  return static_cast<int>(registers.orig_rax);
}

Word argument(const Registers& registers, int index) {
  return registers.*kArguments[index];
}

void set_argument(Registers& registers, int index, Word value) {
  registers.*kArguments[index] = value;
}

void set_result(Registers& registers, long result) {
  registers.rax = static_cast<Word>(result);
}

void restore_arguments(Registers& registers, const Registers& before) {
  for (auto one : kArguments) registers.*one = before.*one;
}

bool make_other_call(pid_t pid, Registers& registers, int number) {
  registers.orig_rax = static_cast<Word>(number);
  return set_registers(pid, registers);
}

#elif defined(__aarch64__)

namespace {
constexpr int kArguments = 6;
Word stack_of(const Registers& registers) {
  return registers.sp;
}
}  // namespace

int call_number(const Registers& registers) {
  constexpr int kNumber = 8;
  return static_cast<int>(registers.regs[kNumber]);
}

Word argument(const Registers& registers, int index) {
  return registers.regs[index];
}

void set_argument(Registers& registers, int index, Word value) {
  registers.regs[index] = value;
}

void set_result(Registers& registers, long result) {
  registers.regs[0] = static_cast<Word>(result);
}

/// The first register has the result.
void restore_arguments(Registers& registers, const Registers& before) {
  for (int i = 1; i < kArguments; ++i) registers.regs[i] = before.regs[i];
}

bool make_other_call(pid_t pid, Registers& registers, int number) {
  iovec vector{&number, sizeof(number)};
  return set_registers(pid, registers) && ::ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &vector) == 0;
}

#else
#error "scripts are recorded on x86-64 and aarch64"
#endif

bool read_memory(pid_t pid, Word from, std::span<char> to) {
  iovec here{to.data(), to.size()};
  iovec there{reinterpret_cast<void*>(from), to.size()};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(to.size());
}

bool write_memory(pid_t pid, Word to, std::span<const char> from) {
  iovec here{const_cast<char*>(from.data()), from.size()};
  iovec there{reinterpret_cast<void*>(to), from.size()};
  return ::process_vm_writev(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(from.size());
}

void resume(pid_t pid, int signal) {
  ::ptrace(PTRACE_CONT, pid, nullptr, signal);
}

void resume_to_end_of_call(pid_t pid) {
  ::ptrace(PTRACE_SYSCALL, pid, nullptr, 0);
}

bool ignores_interrupts(pid_t pid) {
  constexpr std::uint64_t kBoth = 1ULL << (SIGINT - 1) | 1ULL << (SIGQUIT - 1);
  const auto status = sys::read_proc_file(pid, "status").value_or("");
  constexpr std::string_view kName = "SigIgn:";
  const auto at = status.find(kName);
  constexpr int kHexadecimal = 16;
  return at != std::string::npos &&
         (std::strtoull(status.c_str() + at + kName.size(), nullptr, kHexadecimal) & kBoth) == kBoth;
}

void hide_vdso(pid_t pid) {
  Registers registers{};
  if (!get_registers(pid, registers)) return;
  // The stack begins with argc, argv and its null, the environment and its null, then pairs of words.
  constexpr int kMostWords = 200'000;
  Word at = stack_of(registers) + sizeof(std::uint64_t);
  std::array<std::uint64_t, 2> pair{};
  const auto read = [&] {
    return read_memory(pid, at, {reinterpret_cast<char*>(pair.data()), sizeof(pair)});
  };
  int nulls = 0;
  for (int i = 0; i < kMostWords && nulls < 2 && read(); ++i, at += sizeof(std::uint64_t))
    nulls += pair[0] == 0 ? 1 : 0;
  for (; nulls == 2 && read() && pair[0] != AT_NULL; at += sizeof(pair)) {
    constexpr std::uint64_t kIgnored = AT_IGNORE;
    if (pair[0] == AT_SYSINFO_EHDR)
      write_memory(pid, at, {reinterpret_cast<const char*>(&kIgnored), sizeof(kIgnored)});
  }
}

std::optional<std::string> read_text(pid_t pid, Word from) {
  constexpr std::size_t kLongest = 128U << 10U;  // MAX_ARG_STRLEN
  constexpr std::size_t kPage = 4096;
  std::string text;
  if (from == 0) return std::nullopt;
  while (text.size() < kLongest) {
    std::array<char, kPage> page{};
    const auto size = kPage - from % kPage;  // not into a page that may not exist
    if (!read_memory(pid, from, {page.data(), size})) return std::nullopt;
    const std::string_view part(page.data(), size);
    const auto end = part.find('\0');
    text += part.substr(0, end);
    if (end != std::string_view::npos) return text;
    from += size;
  }
  return std::nullopt;
}

std::vector<std::string> read_texts(pid_t pid, Word from) {
  constexpr std::size_t kMost = 100'000;
  constexpr std::size_t kMostBytes = 4U << 20U;
  std::size_t bytes = 0;
  std::vector<std::string> texts;
  for (; texts.size() < kMost && from != 0; from += sizeof(std::uint64_t)) {
    std::uint64_t pointer = 0;
    if (!read_memory(pid, from, {reinterpret_cast<char*>(&pointer), sizeof(pointer)}) || pointer == 0) break;
    const auto text = read_text(pid, pointer);
    if (!text || (bytes += text->size()) > kMostBytes) break;
    texts.push_back(*text);
  }
  return texts;
}

Word room_for_path(const Registers& registers, int index) {
  constexpr Word kRedZone = 256;  // 128 bytes on x86-64
  constexpr Word kRoom = PATH_MAX * 2;
  constexpr Word kAlignment = 16;
  return (stack_of(registers) - kRedZone - kRoom * static_cast<unsigned>(index + 1)) & ~(kAlignment - 1);
}

}  // namespace nlaunch::shell
