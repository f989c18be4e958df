// Modules that documents.mjs makes.
declare module 'virtual:documents' {
  const address: string;
  export default address;
}
