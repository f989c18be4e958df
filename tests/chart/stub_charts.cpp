#include "chart/stub_charts.hpp"

#include <sstream>
#include <stdexcept>

#include "support/process.hpp"

namespace gitops::test {

namespace fs = std::filesystem;

namespace {

// As the chart names its Deployments: "<fullnameOverride>-<workload>".
std::string templates(const StubChart& part) {
  const std::string image =
      part.reads_global
          ? "{{ .Values.image.repository | default .Values.global.image.repository }}:"
            "{{ .Values.image.tag | default .Values.global.image.tag | default .Chart.AppVersion }}"
          : "{{ .Values.controller.image.repository }}:"
            "{{ .Values.controller.image.tag | default .Chart.AppVersion }}";
  std::string all;
  for (const auto& workload : part.workloads) {
    all +=
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n"
        "  name: {{ .Values.fullnameOverride | default .Chart.Name }}-" +
        workload + "\n  namespace: {{ .Release.Namespace }}\n  labels: {app: " + part.name + "-" +
        workload + "}\nspec:\n  selector: {matchLabels: {app: " + part.name + "-" + workload +
        "}}\n  template:\n    metadata: {labels: {app: " + part.name + "-" + workload +
        "}}\n    spec:\n"
        "      {{- with .Values.global.imagePullSecrets }}\n"
        "      imagePullSecrets: {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
        "      {{- with .Values.global.nodeSelector }}\n"
        "      nodeSelector: {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
        "      {{- with .Values.global.priorityClassName }}\n"
        "      priorityClassName: {{ . }}\n      {{- end }}\n"
        "      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\n"
        "      containers:\n        - name: main\n          command: [main]\n          image: " +
        image +
        "\n          securityContext:\n            allowPrivilegeEscalation: false\n"
        "            capabilities: {drop: [ALL]}\n";
  }
  return all;
}

std::string values(const StubChart& part) {
  if (part.reads_global) {
    return "fullnameOverride: \"\"\nimage: {repository: \"\", tag: \"\"}\nglobal:\n"
           "  image: {repository: " +
           part.repository +
           ", tag: \"\", imagePullPolicy: IfNotPresent}\n"
           "  imagePullSecrets: []\n  nodeSelector: {kubernetes.io/os: linux}\n"
           "  priorityClassName: \"\"\n";
  }
  return "fullnameOverride: \"\"\nglobal: {}\ncontroller: {image: {repository: " + part.repository +
         ", tag: \"\"}}\n";
}

// What the chart brings along itself, where that is not what was tested.
std::string brought(const std::string& name, const std::string& program) {
  if (name == "argo-cd") return "v3.2.6";
  if (name == "argo-rollouts") return "v1.9.0";
  return name == "sealed-secrets" ? program.substr(1) : program;
}

}  // namespace

std::vector<StubChart> stub_charts() {
  std::istringstream lines(
      run_or_throw({"python3", fs::path(GITOPS_SOURCE_DIR) / "charts/package.py", "--list"}));
  std::vector<StubChart> all;
  std::string name;
  std::string version;
  std::string program;
  while (lines >> name >> version >> program) {
    StubChart part{.name = name,
                   .version = version,
                   .program = brought(name, program),
                   .repository = "registry.example.com/" + name,
                   .reads_global = name == "argo-cd" || name == "argo-events",
                   .workloads = {"controller"}};
    if (name == "argo-cd") part.workloads = {"server", "repo-server", "applicationset-controller"};
    if (name == "argo-workflows") part.workloads = {"server", "controller"};
    part.enabled_image =
        part.repository + ":" + (name == "sealed-secrets" ? part.program : program);
    all.push_back(std::move(part));
  }
  if (all.size() != 5) throw std::runtime_error("package.py --list names not five parts");
  return all;
}

void pack(const Helm& helm, const StubChart& part, const fs::path& folder) {
  const auto chart = folder / "source" / part.name;
  fs::create_directories(chart / "templates");
  write_file(chart / "Chart.yaml", "apiVersion: v2\nname: " + part.name + "\nversion: " +
                                       part.version + "\nappVersion: " + part.program + "\n");
  write_file(chart / "values.yaml", values(part));
  write_file(chart / "templates/workloads.yaml", templates(part));
  const auto packed = helm.run({"package", chart, "-d", folder});
  if (!packed.ok()) throw std::runtime_error("helm package: " + packed.err);
}

}  // namespace gitops::test
