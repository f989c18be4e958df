#include "common/http/route_table.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

#include "common/core/encoding.hpp"
#include "common/http/message.hpp"

namespace gitops::http {
namespace {

constexpr std::string_view kRest = "...";

bool is_text(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < 0x20 || first == 0x7f) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Returns whether a part between two slashes, including encoded ones, is "." or "..".
bool has_dots(std::string_view segment) {
  while (true) {
    const auto slash = segment.find('/');
    const auto part = segment.substr(0, slash);
    if (part == "." || part == "..") return true;
    if (slash == std::string_view::npos) return false;
    segment.remove_prefix(slash + 1);
  }
}

// Returns the decoded segments of a path; nothing if one is malformed.
std::optional<std::vector<std::string>> segments_of(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  std::vector<std::string> segments;
  do {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    auto segment = percent_decode(path.substr(0, end));
    if (!segment || !is_text(*segment) || has_dots(*segment)) return std::nullopt;
    segments.push_back(std::move(*segment));
    path.remove_prefix(end);
  } while (!path.empty());
  return segments;
}

}  // namespace

const std::string& RouteParameters::at(std::string_view name) const {
  const auto found =
      std::ranges::find(values_, name, [](const auto& value) { return value.first; });
  if (found == values_.end()) {
    throw std::logic_error("the route has no parameter " + std::string(name));
  }
  return found->second;
}

std::vector<RouteTable::Segment> RouteTable::parse(const std::string& pattern) {
  const auto wrong = [&pattern](const char* why) {
    return std::logic_error("route " + pattern + ": " + why);
  };
  if (!pattern.starts_with('/')) throw wrong("a pattern begins with '/'");
  std::vector<Segment> segments;
  std::set<std::string> names;
  std::string_view rest = pattern;
  do {
    rest.remove_prefix(1);
    std::string_view text = rest.substr(0, rest.find('/'));
    rest.remove_prefix(text.size());
    Segment segment{.text = std::string(text)};
    if (text.starts_with('{') && text.ends_with('}')) {
      text = text.substr(1, text.size() - 2);
      segment.kind = Segment::Kind::parameter;
      if (text.ends_with(kRest)) {
        text.remove_suffix(kRest.size());
        segment.kind = Segment::Kind::rest;
        if (!rest.empty()) throw wrong("{name...} is the last segment");
      }
      segment.text = text;
      if (text.empty() || !names.insert(segment.text).second) {
        throw wrong("a parameter needs a name of its own");
      }
    }
    if (text.find_first_of("{}%?#") != std::string_view::npos) {
      throw wrong("a segment is text or {parameter}");
    }
    segments.push_back(std::move(segment));
  } while (!rest.empty());
  return segments;
}

bool RouteTable::is_better(const Pattern& a, const Pattern& b) {
  const auto order = std::lexicographical_compare_three_way(
      a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
      [](const Segment& x, const Segment& y) { return x.kind <=> y.kind; });
  return order == 0 ? a.row < b.row : order < 0;
}

RouteTable::RouteTable(std::vector<Row> rows) {
  std::set<std::string> shapes;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Pattern pattern{
        .row = row, .method = std::move(rows[row].method), .segments = parse(rows[row].pattern)};
    if (!is_token(pattern.method)) {
      throw std::logic_error("route " + rows[row].pattern + ": the method is malformed");
    }
    // Patterns that differ only in the names of their parameters match the same paths.
    std::string shape = pattern.method;
    for (const Segment& segment : pattern.segments) {
      shape += segment.kind == Segment::Kind::text        ? "/" + segment.text
               : segment.kind == Segment::Kind::parameter ? "/{}"
                                                          : "/{...}";
    }
    if (!shapes.insert(shape).second) {
      throw std::logic_error("route " + rows[row].pattern + ": it is there twice");
    }
    patterns_.push_back(std::move(pattern));
  }
  std::ranges::sort(patterns_, is_better);
}

RouteMatch RouteTable::match(std::string_view method, std::string_view path) const {
  RouteMatch match;
  const auto segments = segments_of(path);
  if (!segments) {
    match.kind = RouteMatch::Kind::malformed;
    return match;
  }
  const auto fits = [&segments](const Pattern& pattern) {
    if (segments->size() < pattern.segments.size()) return false;
    for (std::size_t i = 0; i < pattern.segments.size(); ++i) {
      const Segment& expected = pattern.segments[i];
      const std::string& actual = (*segments)[i];
      if (expected.kind == Segment::Kind::rest) return true;
      if (expected.kind == Segment::Kind::text ? actual != expected.text : actual.empty()) {
        return false;
      }
    }
    return segments->size() == pattern.segments.size();
  };
  std::vector<std::string_view> allowed;
  const Pattern* found = nullptr;
  const Pattern* found_get = nullptr;
  for (const Pattern& pattern : patterns_) {
    if (!fits(pattern)) continue;
    allowed.push_back(pattern.method);
    if (pattern.method == "GET") {
      allowed.push_back("HEAD");
      if (found_get == nullptr) found_get = &pattern;
    }
    if (pattern.method == method) {
      found = &pattern;
      break;
    }
  }
  if (found == nullptr && method == "HEAD") found = found_get;
  if (found == nullptr && allowed.empty()) return match;
  if (found == nullptr) {
    allowed.push_back("OPTIONS");
    std::ranges::sort(allowed);
    allowed.erase(std::ranges::unique(allowed).begin(), allowed.end());
    for (const auto name : allowed)
      match.allow.append(match.allow.empty() ? "" : ", ").append(name);
    match.kind =
        method == "OPTIONS" ? RouteMatch::Kind::options : RouteMatch::Kind::method_not_allowed;
    return match;
  }
  match.kind = RouteMatch::Kind::found;
  match.row = found->row;
  for (std::size_t i = 0; i < found->segments.size(); ++i) {
    const Segment& segment = found->segments[i];
    if (segment.kind == Segment::Kind::text) continue;
    std::string value = (*segments)[i];
    if (segment.kind == Segment::Kind::rest) {
      for (std::size_t more = i + 1; more < segments->size(); ++more) {
        value.append("/").append((*segments)[more]);
      }
    }
    match.parameters.values_.emplace_back(segment.text, std::move(value));
  }
  return match;
}

}  // namespace gitops::http
