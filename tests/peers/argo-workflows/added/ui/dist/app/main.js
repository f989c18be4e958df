// Stands for the user interface, which the module lacks: asks the API as that does, relative to the
// page's base.
fetch('api/v1/version')
  .then((reply) => reply.json())
  .then((version) => {
    document.getElementById('version').textContent = `version ${version.version}`;
  });
