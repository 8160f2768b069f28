// `dwell doctor`: what this machine allows, as a list for people or as JSON.
#pragma once

namespace dwell::cli {

// Exit code: 0 if recording can work, 3 if not.
int run_doctor(bool json);

}  // namespace dwell::cli
