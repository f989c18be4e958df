#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gitops::reporter {

// An index of applications by the mark of their parent, which finds them when the parent is
// deleted. A mark is the parent's name as Argo CD's tracking annotation or label has it: "name", or
// "namespace_name". Pure.
class Children {
 public:
  // Sets the mark that the application carries from now on; empty: none.
  void set(const std::string& application, std::string_view mark) {
    const auto before = marks_.find(application);
    if (before != marks_.end()) {
      if (before->second == mark) return;
      remove(application, before->second);
      marks_.erase(before);
    }
    if (mark.empty()) return;
    marks_.emplace(application, mark);
    applications_[std::string(mark)].insert(application);
  }
  // Returns the applications with this mark.
  [[nodiscard]] std::set<std::string> of(const std::string& mark) const {
    const auto found = applications_.find(mark);
    return found == applications_.end() ? std::set<std::string>() : found->second;
  }

 private:
  void remove(const std::string& application, const std::string& mark) {
    const auto found = applications_.find(mark);
    found->second.erase(application);
    if (found->second.empty()) applications_.erase(found);
  }

  std::unordered_map<std::string, std::string> marks_;                   // by application
  std::unordered_map<std::string, std::set<std::string>> applications_;  // by mark
};

}  // namespace gitops::reporter
