#include "cli/source_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbolize/debug_info.h"
#include "symbolize/debug_servers.h"
#include "symbolize/demangle.h"
#include "symbolize/line_process.h"

namespace dwell::cli {
namespace {

constexpr size_t kModulesToldMax = 8;

// `path` itself where the working directory is gone.
std::string absolute(const std::string& path) {
  std::error_code failure;
  const auto whole = std::filesystem::absolute(path, failure);
  return failure ? path : whole.string();
}

// A frame in its part: the call of a return address lies before it.
struct Place {
  uint32_t frame = 0;
  bool return_address = false;
  auto operator<=>(const Place&) const = default;
};

// Reasons, each with the modules and frames that it holds for.
struct Untold {
  std::string module;
  std::string reason;
  uint64_t frames = 0;
};

class SourceLines {
 public:
  SourceLines(Profile profile, const SourceOptions& options,
              std::optional<symbolize::DebugServers> servers)
      : profile_(std::move(profile)),
        options_(options),
        servers_(std::move(servers)),
        debug_dir_(absolute(options.debug_dir)) {
    for (StringId id = 0; id < profile_.strings.size(); ++id)
      string_ids_.try_emplace(profile_.strings[id], id);
  }

  Profile run() {
    collect_addresses();
    for (const auto& [module, frames_at] : frames_at_) look_up(module, frames_at);
    expand_stacks();
    tell();
    return std::move(profile_);
  }

 private:
  using FramesAt = std::map<uint64_t, uint32_t>;  // by address: one of the frames there

  static bool has_file(ModuleKind kind) {
    return kind == ModuleKind::kFile || kind == ModuleKind::kDeletedFile;
  }
  bool is_wanted(uint32_t frame) const {
    const Frame& f = profile_.frames[frame];
    const bool in_file = is_walked(f) && has_file(profile_.modules[f.module].kind);
    return in_file && (options_.lines || options_.inlined || f.how == Resolution::kNone);
  }
  uint64_t address_of(const Place& place) const {
    const uint64_t address = profile_.frames[place.frame].address;
    return address - (place.return_address && address > 0 ? 1 : 0);
  }

  // As the recorder has it: the first user frame is where the thread was, all others are where
  // calls return to.
  template <typename Use>
  void each_place(const Stack& stack, Use use) const {
    bool is_leaf = true;
    for (const uint32_t frame : stack.frames) {
      const bool user = is_walked(profile_.frames[frame]);
      use(Place{frame, user && !is_leaf});
      if (user) is_leaf = false;
    }
  }

  // Of each module, in order: neighbours share what libdw has read.
  void collect_addresses() {
    for (const Stack& stack : profile_.stacks)
      each_place(stack, [&](const Place& place) {
        if (is_wanted(place.frame))
          frames_at_[profile_.frames[place.frame].module][address_of(place)] = place.frame;
      });
  }

  void look_up(uint32_t module, const FramesAt& frames_at) {
    std::vector<uint64_t> addresses;
    for (const auto& [address, frame] : frames_at) addresses.push_back(address);
    const Module& m = profile_.modules[module];
    const std::string& path = profile_.text(m.path);
    const auto info =
        symbolize::find_debug_info({path, profile_.text(m.build_id), profile_.window.end_unix_ns},
                                   debug_dir_, servers_ ? &*servers_ : nullptr);
    auto chains = info ? symbolize::look_up_lines(*info, addresses)
                       : Result<std::vector<symbolize::SourceChain>>(std::unexpected(info.error()));
    if (chains && m.build_id == 0 && has_other_functions(frames_at, *chains))
      chains = runtime_error("another file is there now: its functions are others");
    if (!chains) return untold_.push_back({path, chains.error().message, addresses.size()});
    if (!info->alternate_missing.empty())
      untold_.push_back({path, info->alternate_missing, addresses.size()});
    for (size_t i = 0; i < addresses.size(); ++i)
      if (!(*chains)[i].empty()) chains_[{module, addresses[i]}] = std::move((*chains)[i]);
  }

  // Without a build id a file of another root may have the same path: the names tell.
  bool has_other_functions(const FramesAt& frames_at,
                           const std::vector<symbolize::SourceChain>& chains) const {
    size_t same = 0, other = 0, i = 0;
    for (const auto& [address, index] : frames_at) {
      const symbolize::SourceChain& chain = chains[i++];
      const Frame& frame = profile_.frames[index];
      const std::string& symbol = profile_.text(frame.symbol != 0 ? frame.symbol : frame.function);
      if (symbol.empty() || chain.empty() || chain.back().function.empty()) continue;
      ++(symbol.starts_with(chain.back().function) ? same : other);  // "inner.constprop.0"
    }
    return other > same;
  }

  StringId string(const std::string& text) {
    const auto [at, is_new] =
        string_ids_.try_emplace(text, static_cast<StringId>(profile_.strings.size()));
    if (is_new) profile_.strings.push_back(text);
    return at->second;
  }

  void set_position(Frame& frame, const symbolize::SourceFrame& source) {
    if (!options_.lines || source.line == 0) return;
    frame.file = string(source.file);
    frame.line = source.line;
  }

  void set_name(Frame& frame, const std::string& symbol) {
    const std::string function = symbolize::demangle(symbol);
    frame.function = string(function);
    frame.symbol = function == symbol ? 0 : string(symbol);
    frame.how = symbol.empty() ? Resolution::kNone : Resolution::kDebugFile;
  }

  uint32_t add_frame(const Frame& frame) {
    frames_.push_back(frame);
    return static_cast<uint32_t>(frames_.size() - 1);
  }

  // The frames that stand for this one: those inlined there, then itself.
  const std::vector<uint32_t>& expansion(const Place& place) {
    const auto [at, is_new] = expansions_.try_emplace(place);
    if (!is_new) return at->second;
    const Frame& frame = profile_.frames[place.frame];
    const auto chain = chains_.find({frame.module, address_of(place)});
    Frame holder = frame;
    if (is_wanted(place.frame) && chain != chains_.end()) {
      const symbolize::SourceChain& sources = chain->second;
      for (size_t i = 0; options_.inlined && i + 1 < sources.size(); ++i) {
        Frame inlined = frame;
        inlined.inlined = true;
        inlined.offset = 0;
        set_name(inlined, sources[i].function);
        set_position(inlined, sources[i]);
        at->second.push_back(add_frame(inlined));
      }
      if (frame.how == Resolution::kNone && !sources.back().function.empty())
        name_holder(holder, sources.back().function);
      set_position(holder, sources.back());
    }
    at->second.push_back(add_frame(holder));
    return at->second;
  }

  // It had no name when it was recorded, and its debug information came later.
  void name_holder(Frame& frame, const std::string& symbol) {
    set_name(frame, symbol);
    for (UnresolvedModule& unresolved : profile_.unresolved)
      if (unresolved.module == frame.module && unresolved.frames > 0) --unresolved.frames;
  }

  void expand_stacks() {
    for (Stack& stack : profile_.stacks) {
      std::vector<uint32_t> frames;
      each_place(stack, [&](const Place& place) {
        const std::vector<uint32_t>& all = expansion(place);
        frames.insert(frames.end(), all.begin(), all.end());
      });
      stack.frames = std::move(frames);
    }
    profile_.frames = std::move(frames_);
    std::erase_if(profile_.unresolved, [](const auto& u) { return u.frames == 0; });
  }

  // The modules with most frames first.
  void tell() {
    if (options_.lines) profile_.options.push_back("report-lines=yes");
    if (options_.inlined) profile_.options.push_back("report-inline=yes");
    if (options_.debuginfod) profile_.options.push_back("report-debuginfod=yes");
    const char* what = options_.lines || options_.inlined ? "source lines" : "names";
    std::ranges::stable_sort(untold_, std::greater<>(), &Untold::frames);
    for (size_t i = 0; i < std::min(untold_.size(), kModulesToldMax); ++i)
      profile_.warnings.push_back(fmt::format("{} of {} ({} addresses): {}", what,
                                              untold_[i].module, untold_[i].frames,
                                              untold_[i].reason));
    if (untold_.size() > kModulesToldMax)
      profile_.warnings.push_back(fmt::format("{} of {} more modules are missing as well", what,
                                              untold_.size() - kModulesToldMax));
  }

  Profile profile_;
  const SourceOptions& options_;
  std::optional<symbolize::DebugServers> servers_;
  std::unordered_map<std::string, StringId> string_ids_;
  std::string debug_dir_;
  std::map<uint32_t, FramesAt> frames_at_;  // by module
  std::map<std::pair<uint32_t, uint64_t>, symbolize::SourceChain> chains_;
  std::map<Place, std::vector<uint32_t>> expansions_;
  std::vector<Frame> frames_;
  std::vector<Untold> untold_;
};

}  // namespace

Result<Profile> add_source_lines(Profile profile, const SourceOptions& options) {
  std::optional<symbolize::DebugServers> servers;
  if (options.debuginfod) {
    DWELL_ASSIGN(servers, symbolize::DebugServers::create());
  }
  return SourceLines(std::move(profile), options, std::move(servers)).run();
}

}  // namespace dwell::cli
