// A class that a module does not have is an error of the build.
declare module "*.module.css";
declare module "*.css";
