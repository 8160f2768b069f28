#include "cli/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace dwell::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

Surroundings surroundings() {
  return {.has_display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"),
          .is_remote = is_set("SSH_CONNECTION") || is_set("SSH_CLIENT") || is_set("SSH_TTY"),
          .stdout_is_terminal = isatty(STDOUT_FILENO) == 1,
          .is_root = geteuid() == 0};
}

bool may_open_browser(const Surroundings& around) {
  return around.has_display && !around.is_remote && around.stdout_is_terminal && !around.is_root;
}

bool open_in_browser(const std::string& path) {
  std::error_code failure;
  const std::string absolute = std::filesystem::absolute(path, failure).string();
  if (failure) return false;
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return false;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})  // it chatters
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  std::string program = "xdg-open";
  std::string argument = absolute;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int status = posix_spawnp(&child, "xdg-open", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return status == 0;
}

}  // namespace dwell::cli
