// Shows a file in the user's web browser, when there is somebody in front of one. Used by the
// report command.
#pragma once

#include <string>

namespace dwell::cli {

// What decides whether a browser may be opened.
struct Surroundings {
  bool has_display = false;  // DISPLAY or WAYLAND_DISPLAY is set
  bool is_remote = false;    // SSH_CONNECTION, SSH_CLIENT or SSH_TTY is set
  bool stdout_is_terminal = false;
  bool is_root = false;  // browsers refuse to run as root, or leave root's files behind
};
Surroundings surroundings();  // of this process

bool may_open_browser(const Surroundings& around);

// Starts xdg-open and does not wait for it. False if it could not be started.
bool open_in_browser(const std::string& path);

}  // namespace dwell::cli
