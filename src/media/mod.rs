//! Copies of pictures: the thread that makes them, and the folder that holds the files.

pub mod copy_name;
pub mod decode_thread;
pub mod folder;
mod reader;

pub use decode_thread::DecodeThread;
pub use folder::MediaFolder;
pub use reader::MediaReader;
