#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "chart/helm.hpp"

namespace gitops::test {

/// Charts that stand for those in the package with Argo, in the versions that charts/package.py
/// takes. They have workloads, and read global.image, global.imagePullSecrets and the places of
/// pods as the charts of Argo do: a key of global in the place of their own default.
struct StubChart {
  std::string name;
  std::string version;     // of the chart
  std::string program;     // its appVersion
  std::string repository;  // of its images
  bool reads_global;       // global.image and global.imagePullSecrets
  std::vector<std::string> workloads;
  std::string enabled_image = {};  // what its containers run in the package
};

/// The parts of the package, as charts/package.py --list names them.
std::vector<StubChart> stub_charts();

/// Packs a stand-in into the folder.
void pack(const Helm& helm, const StubChart& part, const std::filesystem::path& folder);

}  // namespace gitops::test
