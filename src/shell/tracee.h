#pragma once
#include <sys/types.h>
#include <sys/user.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

/// The registers and the memory of a process that ptrace has stopped, on x86-64 and aarch64.
namespace nlaunch::shell {

using Registers = user_regs_struct;
using Word = unsigned long long;

bool get_registers(pid_t pid, Registers& registers);
bool set_registers(pid_t pid, const Registers& registers);
/// The number of the system call at whose entry it stopped.
int call_number(const Registers& registers);
/// An argument of it, from 0.
Word argument(const Registers& registers, int index);
void set_argument(Registers& registers, int index, Word value);
void set_result(Registers& registers, long result);
/// Restores the arguments, which programs expect to be preserved, and keeps the result.
void restore_arguments(Registers& registers, const Registers& before);
/// Makes another call instead, with these registers, or none: its result is set at its exit.
constexpr int kNoCall = -1;
bool make_other_call(pid_t pid, Registers& registers, int number);

/// Lets it go on, with a signal unless that is 0; or only until the exit of the call at whose entry it is.
void resume(pid_t pid, int signal);
void resume_to_end_of_call(pid_t pid);

/// A shell without job control starts background commands with these two signals ignored. Bit N - 1 of SigIgn
/// in /proc/PID/status is signal N.
bool ignores_interrupts(pid_t pid);
/// Takes the vDSO from a program that has just been started, so that it asks the kernel for the time.
void hide_vdso(pid_t pid);

bool read_memory(pid_t pid, Word from, std::span<char> to);
bool write_memory(pid_t pid, Word to, std::span<const char> from);
/// Reads up to a NUL; nullopt if the memory cannot be read or the text exceeds 128 KiB.
std::optional<std::string> read_text(pid_t pid, Word from);
/// Reads an array of pointers (argv, envp), at most 4 MiB.
std::vector<std::string> read_texts(pid_t pid, Word from);
/// Where a path can be written: below the stack, which the process does not use. `index`: of several paths.
Word room_for_path(const Registers& registers, int index);

}  // namespace nlaunch::shell
